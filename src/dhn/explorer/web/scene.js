// The motion itself: rods and bobs, masses on springs, bodies in a plane.

/** Where the bodies are, from coordinates: points, what ties them, and how a drag moves them. */
function layout(payload, system, constants, ranges) {
  const { names, angles } = payload, d = names.length;
  if (system && system.line) return lineOfMasses(ranges.slice(0, d));
  if (system && system.elastic) return elasticPendulum();
  if (angles.every(Boolean)) {
    const lengths = system && system.lengths ? system.lengths(constants) : Array(d).fill(1);
    return chain(lengths);
  }
  if (!angles.some(Boolean) && d % 2 === 0) return plane(d);
  return d === 1 ? lineOfMasses(ranges.slice(0, 1)) : null;
}

function chain(lengths) {
  const reach = lengths.reduce((a, b) => a + b, 0) * 1.12;
  const points = (q) => {
    let x = 0, y = 0;
    return q.map((angle, i) => [(x += lengths[i] * Math.sin(angle)), (y -= lengths[i] * Math.cos(angle))]);
  };
  return {
    range: [-reach, reach, -reach, reach],
    points,
    rods: (at) => at.map((point, i) => [i ? at[i - 1] : [0, 0], point]),
    pivot: [0, 0],
    // A bob is let go at rest; its angle follows the pointer without a jump of a whole turn.
    drag(q, p, i, x, y) {
      const from = i ? points(q)[i - 1] : [0, 0];
      const angle = Math.atan2(x - from[0], from[1] - y);
      const next = [...q];
      next[i] = q[i] + turn(angle - q[i]);
      return { q: next, p: p.map(() => 0) };
    },
  };
}

function elasticPendulum() {
  const points = (q) => [[q[0] * Math.sin(q[1]), -q[0] * Math.cos(q[1])]];
  return {
    range: [-2, 2, -2.2, 0.6],
    points,
    springs: (at) => [[[0, 0], at[0]]],
    pivot: [0, 0],
    drag: (q, p, i, x, y) => ({
      q: [Math.hypot(x, y), q[1] + turn(Math.atan2(x, -y) - q[1])], p: p.map(() => 0),
    }),
  };
}

function lineOfMasses(ranges) {
  const d = ranges.length, gap = 0.75 * Math.max(...ranges.map(([low, high]) => high - low));
  const place = (i) => (i - (d - 1) / 2) * gap, wall = place(0) - gap;
  const points = (q) => q.map((v, i) => [place(i) + v, 0]);
  return {
    range: [wall - 0.05 * gap, place(d - 1) + (d > 1 ? 1.05 : 0.8) * gap, -0.5 * gap, 0.5 * gap],
    points,
    walls: d > 1 ? [wall, place(d - 1) + gap] : [wall],
    springs: (at) => {
      const ends = [[wall, 0], ...at, ...(d > 1 ? [[place(d - 1) + gap, 0]] : [])];
      return ends.slice(1).map((b, i) => [ends[i], b]);
    },
    drag: (q, p, i, x) => ({ q: q.map((v, j) => (j === i ? x - place(i) : v)), p: p.map(() => 0) }),
  };
}

function plane(d) {
  return {
    range: null,  // from the data
    points: (q) => Array.from({ length: d / 2 }, (_, i) => [q[2 * i], q[2 * i + 1]]),
    trail: true,
    // Bodies in a plane keep their momenta: at rest they would only fall into each other.
    drag: (q, p, i, x, y) => ({ q: q.map((v, j) => (j === 2 * i ? x : j === 2 * i + 1 ? y : v)), p }),
  };
}

class Scene {
  constructor(canvas, app) {
    this.app = app;
    this.plot = new Plot(canvas, [6, 6, 6, 6]);
    let held = 0;
    this.plot.draggable(
      (x, y) => {
        if (!this.layout) return false;
        const away = ([a, b]) => Math.hypot(this.plot.x(a) - x, this.plot.y(b) - y);
        const near = this.layout.points(app.now().q).map(away);
        held = near.indexOf(Math.min(...near));
        return near[held] < 34;
      },
      (x, y) => {
        const { q, p } = app.now();
        const next = this.layout.drag(q, p, held, this.plot.atX(x), this.plot.atY(y));
        app.begin(next.q, next.p);
      },
      () => app.released(),
    );
  }

  draw() {
    const { app, plot } = this;
    plot.clear();
    this.layout = layout(app.payload, app.system, app.constants, app.ranges);
    if (!this.layout) return;
    const range = this.layout.range || this.dataRange();
    plot.view(...range, { same: true });
    for (const x of this.layout.walls || []) {
      plot.g.fillStyle = colours.quiet;
      plot.g.fillRect(plot.x(x) - 3, plot.y(0) - 40, 3, 80);
    }
    const { path, truth, fan } = app.motion;
    for (const other of fan) this.bodies(other, { alpha: 0.13, colour: colours.model });
    this.ahead(path);
    this.trail(path, colours.model, []);
    if (truth && app.shows.truth) {
      this.trail(truth, colours.truth, [4, 4]);
      this.bodies(truth, { colour: colours.truth, hollow: true });
    }
    this.bodies(path, { colour: colours.model });
  }

  dataRange() {
    const { d, ranges } = this.app, span = [Infinity, -Infinity, Infinity, -Infinity];
    for (let i = 0; i < d; i++) {
      const k = 2 * (i % 2);
      span[k] = Math.min(span[k], ranges[i][0]);
      span[k + 1] = Math.max(span[k + 1], ranges[i][1]);
    }
    return span;
  }

  /** Where the model will lead the last body, or every body in a plane. */
  ahead(path) {
    const [, last] = this.app.window(), bodies = this.layout.points(path.q[0]).length;
    if (this.layout.springs && !this.layout.pivot) return;  // masses on a line retrace it
    for (let i = this.layout.trail ? 0 : bodies - 1; i < bodies; i++) {
      this.plot.line(Math.min(path.length, last), (k) => this.layout.points(path.q[k])[i], colours.model,
        { width: 1, alpha: 0.28, from: Math.floor(this.app.cursor) });
    }
  }

  trail(path, colour, dash) {
    const end = Math.min(this.app.cursor, path.length - 1), from = Math.max(0, Math.floor(end) - 60);
    const bodies = this.layout.points(path.q[0]).length;
    for (let i = this.layout.trail ? 0 : bodies - 1; i < bodies; i++) {
      this.plot.line(Math.floor(end) + 1, (k) => this.layout.points(path.q[k])[i], colour,
        { width: 1.8, alpha: 0.8, from, dash });
    }
  }

  bodies(path, { alpha = 1, colour, hollow = false }) {
    const { plot, layout: at } = this, { g } = plot;
    const q = stateAt(path, this.app.cursor).q, points = at.points(q);
    g.save();
    g.globalAlpha = alpha;
    g.strokeStyle = hollow ? colour : colours.ink;
    g.lineWidth = hollow ? 1.4 : 2.5;
    if (hollow) g.setLineDash([5, 4]);
    g.beginPath();
    for (const [a, b] of at.rods ? at.rods(points) : []) {
      g.moveTo(plot.x(a[0]), plot.y(a[1]));
      g.lineTo(plot.x(b[0]), plot.y(b[1]));
    }
    g.stroke();
    g.lineWidth = 1.4;
    for (const [a, b] of at.springs ? at.springs(points) : []) drawSpring(plot, a, b);
    g.restore();
    if (at.pivot) plot.dot(...at.pivot, 3.5, colours.ink);
    const size = at.trail ? 8 : Math.max(8, Math.min(15, 0.09 * plot.unit));
    for (const [x, y] of points) {
      if (hollow) plot.dot(x, y, size, null, { stroke: colour, alpha });
      else plot.dot(x, y, size, colour, { alpha, stroke: alpha === 1 ? colours.panel : null });
    }
  }
}

function drawSpring(plot, a, b) {
  const { g } = plot, coils = 12;
  const [x0, y0, x1, y1] = [plot.x(a[0]), plot.y(a[1]), plot.x(b[0]), plot.y(b[1])];
  const length = Math.hypot(x1 - x0, y1 - y0) || 1, nx = -(y1 - y0) / length, ny = (x1 - x0) / length;
  g.beginPath();
  g.moveTo(x0, y0);
  for (let i = 1; i < 2 * coils; i++) {
    const f = i / (2 * coils), side = i > 1 && i < 2 * coils - 1 ? (i % 2 ? 7 : -7) : 0;
    g.lineTo(x0 + f * (x1 - x0) + side * nx, y0 + f * (y1 - y0) + side * ny);
  }
  g.lineTo(x1, y1);
  g.stroke();
}

/** The state at a fractional step of a path, between its two neighbours. */
function stateAt(path, cursor) {
  const end = path.length - 1, at = Math.min(cursor, end), i = Math.floor(at), f = at - i;
  const mix = (a) => (f === 0 || i === end ? [...a[i]] : a[i].map((v, c) => (1 - f) * v + f * a[i + 1][c]));
  return { q: mix(path.q), p: mix(path.p) };
}
