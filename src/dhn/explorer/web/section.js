// Poincaré section of two degrees of freedom: (q₂, p₂) whenever q₁ passes its zero upwards.

const SECTION_STEPS = 8000;  // of each orbit
const ORBIT_COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];

class Section {
  constructor(app) {
    this.app = app;
    this.orbits = [];
    this.message = "";
  }

  /** The value of q₁ at which motions are looked at: 0, or the mean if 0 is out of sight. */
  get plane() {
    const { payload, model, ranges } = this.app;
    return payload.angles[0] || (ranges[0][0] < 0 && ranges[0][1] > 0) ? 0 : model.qShift[0];
  }

  clear() {
    this.orbits = [];
  }

  get unfinished() {
    return this.orbits.some(({ path }) => !path.ended && path.length < SECTION_STEPS);
  }

  /** A new orbit from the present start; the old ones stay as long as the system does. */
  begin(path) {
    this.orbits = this.orbits.filter((orbit) => orbit.points.length > 3).slice(-40);
    this.orbits.push({ path, points: [], seen: 1 });
  }

  /** Every orbit to its full length, the newest first; it yields after every step. */
  *extend() {
    for (const orbit of [...this.orbits].reverse()) yield* orbit.path.extend(SECTION_STEPS);
  }

  /** Crossings that the path has made since the last look. */
  update() {
    const { app, plane } = this;
    const value = (q) => (app.payload.angles[0] ? turn(q) : q - plane);
    for (const orbit of this.orbits) {
      const { path } = orbit;
      for (; orbit.seen < path.length; orbit.seen++) {
        const i = orbit.seen, a = value(path.q[i - 1][0]), b = value(path.q[i][0]);
        if (!(a < 0 && b >= 0 && b - a < Math.PI)) continue;
        const f = -a / (b - a);
        orbit.points.push([
          path.q[i - 1][1] + f * (path.q[i][1] - path.q[i - 1][1]),
          path.p[i - 1][1] + f * (path.p[i][1] - path.p[i - 1][1]),
        ]);
      }
    }
  }

  inside(x, y) {
    const { box } = this.app.portrait.plot;
    return x > box.x && x < box.x + box.w && y > box.y && y < box.y + box.h;
  }

  /** Start where the section was touched, with the present learned energy. */
  pick(q2, p2) {
    const { app } = this, { model, motion } = app;
    const energy = (q, p) => model.energy(model.scaleState(q, p), motion.code);
    const above = (p1) => energy([this.plane, q2], [p1, p2]) - energy(motion.path.q[0], motion.path.p[0]);
    const [low, high] = app.ranges[2];
    let before = null;
    // From above: the branch on which q₁ grows.
    for (let k = 0; k <= 60; k++) {
      const p1 = high + ((low - high) * k) / 60, e = above(p1);
      if (before && before.e > 0 && e <= 0) {
        let [a, b] = [p1, before.p1];
        for (let i = 0; i < 50; i++) {
          const middle = (a + b) / 2;
          if (above(middle) > 0) b = middle;
          else a = middle;
        }
        this.message = "";
        return app.begin([this.plane, q2], [b, p2]);
      }
      before = { p1, e };
    }
    this.message = "no state of this energy there";
  }

  draw() {
    const { app } = this, { plot } = app.portrait, { names, angles } = app.payload;
    this.update();
    plot.clear();
    plot.view(...app.ranges[1], ...app.ranges[3]);
    plot.axes(app.label(names[1]), app.label(app.momentum(1)), { xAngle: angles[1] });
    plot.clipped((g) => {
      this.orbits.forEach((orbit, k) => {
        g.fillStyle = ORBIT_COLOURS[k % ORBIT_COLOURS.length];
        for (const [q, p] of orbit.points) g.fillRect(plot.x(angles[1] ? turn(q) : q) - 1, plot.y(p) - 1, 2, 2);
      });
    });
    plot.g.fillStyle = colours.quiet;
    plot.g.textAlign = "left";
    plot.g.textBaseline = "top";
    plot.g.fillText(this.message, plot.box.x + 8, plot.box.y + 8);
  }
}
