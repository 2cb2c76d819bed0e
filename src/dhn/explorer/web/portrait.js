// Phase portrait of one degree of freedom: energy levels, training data, motion.

const LEVELS = 14;  // curves of equal energy
const CELL = 5;  // pixels of the cells in which "outside the training data" is decided

class Portrait {
  constructor(canvas, app) {
    this.app = app;
    this.plot = new Plot(canvas, [50, 10, 8, 34]);
    this.part = 0;
    this.levels = null;
    this.plot.draggable(
      (x, y, tap) => {
        if (!this.plot.x) return false;
        if (this.app.view === "section") return tap && this.app.section.inside(x, y);
        const { q, p } = app.now(), { box } = this.plot;
        const near = Math.hypot(this.plot.x(this.wrap(q[this.part])) - x, this.plot.y(p[this.part]) - y) < 30;
        const inside = x > box.x && x < box.x + box.w && y > box.y && y < box.y + box.h;
        return near || (tap && inside);
      },
      (x, y) => {
        const at = [this.plot.atX(x), this.plot.atY(y)];
        if (this.app.view === "section") return this.app.section.pick(...at);
        const { q, p } = app.now();
        // The nearest turn, so that a dragged angle does not jump.
        q[this.part] = app.payload.angles[this.part] ? q[this.part] + turn(at[0] - q[this.part]) : at[0];
        p[this.part] = at[1];
        app.begin(q, p);
      },
      () => app.released(),
    );
  }

  wrap(v) {
    return this.app.payload.angles[this.part] ? turn(v) : v;
  }

  /** The plotted range of (q, p) of this degree of freedom. */
  range() {
    const { ranges, d } = this.app;
    return [...ranges[this.part], ...ranges[d + this.part]];
  }

  /** Begin the level curves of a new code or, with several coordinates, of the section of phase
   *  space through a new start; they appear when they are ready. */
  newLevels() {
    const { app } = this, { path, code } = app.motion;
    if (!app.hasLevels) return;
    const n = app.model.block_size === 1 ? 61 : 25, range = this.range();
    const state = { q: path.q[0], p: path.p[0] };
    app.tasks.start("levels", energyGrid(app.model, code, state, this.part, range, n, (grid) => {
      const sorted = [...grid].filter(Number.isFinite).sort((a, b) => a - b);
      const low = sorted[0], high = sorted[Math.floor(0.97 * (sorted.length - 1))];
      const [x0, x1, y0, y1] = range;
      const place = ([c, r]) => [x0 + ((x1 - x0) * c) / (n - 1), y0 + ((y1 - y0) * r) / (n - 1)];
      this.levels = Array.from({ length: LEVELS }, (_, i) => {
        // Even in the square root: even in the amplitude near a rest.
        const level = low + (high - low) * ((i + 0.6) / LEVELS) ** 2;
        return levelSegments(grid, n, level).map(([a, b]) => [place(a), place(b)]);
      });
      app.changed = true;
    }));
  }

  draw() {
    const { app, plot } = this, i = this.part, { names } = app.payload;
    plot.clear();
    plot.view(...this.range());
    const angle = app.payload.angles[i];
    const apart = (a, b) => angle && Math.abs(a[0] - b[0]) > Math.PI;
    const point = (path) => (k) => [this.wrap(path.q[k][i]), path.p[k][i]];
    plot.clipped((g) => {
      this.background(g);
      if (this.levels) {
        g.strokeStyle = colours.level;
        g.lineWidth = 0.9;
        g.beginPath();
        for (const [a, b] of this.levels.flat()) {
          g.moveTo(plot.x(a[0]), plot.y(a[1]));
          g.lineTo(plot.x(b[0]), plot.y(b[1]));
        }
        g.stroke();
      }
    });
    plot.axes(app.label(names[i]), app.label(app.momentum(i)), { xAngle: angle });
    plot.clipped(() => {
      const { path, truth, fan } = app.motion, cursor = Math.floor(app.cursor);
      for (const other of fan) {
        plot.line(Math.min(other.length, app.horizon), point(other), colours.model, { width: 0.8, alpha: 0.22, apart });
      }
      const run = app.motion.run;
      if (run) plot.line(run.q.length, point(run), colours.data, { width: 2.2, alpha: 0.9, apart });
      const window = Math.max(app.horizon, cursor + app.horizon / 2);
      const from = Math.max(0, cursor - app.horizon);
      plot.line(Math.min(path.length, window), point(path), colours.model, { width: 1.7, apart, from });
      if (truth && app.shows.truth) {
        const style = { width: 1.5, dash: [5, 4], apart, from };
        plot.line(Math.min(truth.length, window), point(truth), colours.truth, style);
        const true_ = stateAt(truth, app.cursor);
        plot.dot(this.wrap(true_.q[i]), true_.p[i], 6, null, { stroke: colours.truth });
      }
      plot.dot(this.wrap(path.q[0][i]), path.p[0][i], 3, colours.model);
      const now = app.now();
      plot.dot(this.wrap(now.q[i]), now.p[i], 8, colours.model, { stroke: colours.panel });
    });
  }

  /** Training states in grey, and a shade over all that is far from them; drawn once a size. */
  background(g) {
    const { app, plot } = this;
    if (!app.region) return;
    const key = [plot.width, plot.height, this.part, colours.outside, colours.data].join();
    if (key !== this.drawn) {
      this.drawn = key;
      this.picture = this.paint();
    }
    g.drawImage(this.picture, 0, 0, plot.width, plot.height);
  }

  paint() {
    const { app, plot } = this, { box } = plot, i = this.part, { states, radius } = app.region;
    const ratio = window.devicePixelRatio || 1, picture = document.createElement("canvas");
    picture.width = plot.canvas.width;
    picture.height = plot.canvas.height;
    const g = picture.getContext("2d");
    g.scale(ratio, ratio);
    const columns = Math.ceil(box.w / CELL), rows = Math.ceil(box.h / CELL);
    const seen = new Uint8Array(columns * rows);
    // In a projection neighbours are nearer than in the whole space; three cells at least.
    const rx = Math.max(3, Math.ceil((radius * app.model.qScale[i] * plot.unit) / CELL));
    const ry = Math.max(3, Math.ceil(Math.abs(plot.y(radius * app.model.pScale[i]) - plot.y(0)) / CELL));
    const [sx, sy] = [Math.min(rx, 9), Math.min(ry, 9)];
    g.fillStyle = colours.data;
    for (let k = 0; k < states.shape[0]; k++) {
      const s = row(states, k), x = plot.x(s[i]), y = plot.y(s[app.d + i]);
      const c = Math.floor((x - box.x) / CELL), r = Math.floor((y - box.y) / CELL);
      for (let a = -sx; a <= sx; a++) {
        for (let b = -sy; b <= sy; b++) {
          if ((a / sx) ** 2 + (b / sy) ** 2 > 1) continue;
          if (c + a >= 0 && c + a < columns && r + b >= 0 && r + b < rows) seen[(r + b) * columns + c + a] = 1;
        }
      }
      g.globalAlpha = 0.35;
      g.fillRect(x - 0.8, y - 0.8, 1.6, 1.6);
    }
    // One pixel a cell, enlarged smoothly.
    const shade = document.createElement("canvas"), s = shade.getContext("2d");
    [shade.width, shade.height] = [columns, rows];
    s.fillStyle = colours.outside;
    for (let r = 0; r < rows; r++) {
      for (let c = 0; c < columns; c++) if (!seen[r * columns + c]) s.fillRect(c, r, 1, 1);
    }
    g.globalAlpha = 1;
    g.drawImage(shade, box.x, box.y, columns * CELL, rows * CELL);
    return picture;
  }
}
