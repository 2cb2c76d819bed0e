// Coordinates and energy over time.

class Series {
  constructor(canvas, app) {
    this.app = app;
    this.plot = new Plot(canvas, [50, 10, 4, 4]);
    this.plot.draggable(
      (x) => this.plot.box && x > this.plot.box.x,
      (x) => app.seek(this.plot.atX(x) / app.model.timeStep),
      () => app.released(),
    );
  }

  draw() {
    const { app, plot } = this, dt = app.model.timeStep, { path, truth, fan, run } = app.motion;
    plot.clear();
    const [first, last] = app.window(), lanes = app.d, foot = 30;
    const lane = (plot.height - foot) / lanes;
    for (let c = 0; c < lanes; c++) {
      const bottom = c === lanes - 1;
      const margin = plot.margin;
      plot.margin = [50, 10, 5, bottom ? foot + 5 : 5];
      const [low, high] = this.span(c, first, last);
      plot.view(first * dt, last * dt, low, high, { top: c * lane, bottom: (c + 1) * lane + (bottom ? foot : 0) });
      plot.axes(app.label("t"), app.label(app.payload.names[c]), { xTicks: bottom, yAngle: app.payload.angles[c] });
      const at = (p) => (k) => [k * dt, p.q[k][c]];
      plot.clipped((g) => {
        const draw = (p, colour, style) =>
          plot.line(Math.min(p.q.length, last + 1), at(p), colour, { from: first, ...style });
        for (const other of fan) draw(other, colours.model, { width: 0.8, alpha: 0.25 });
        if (run) draw(run, colours.data, { width: 3 });
        draw(path, colours.model, {});
        if (truth && app.shows.truth) draw(truth, colours.truth, { dash: [5, 4] });
        g.strokeStyle = colours.ink;
        g.lineWidth = 1;
        g.beginPath();
        g.moveTo(plot.x(app.cursor * dt), plot.box.y);
        g.lineTo(plot.x(app.cursor * dt), plot.box.y + plot.box.h);
        g.stroke();
      });
      plot.margin = margin;
    }
  }

  /** The range of one coordinate within the window, of prediction and truth. */
  span(c, first, last) {
    let low = Infinity, high = -Infinity;
    const { path, truth, run } = this.app.motion;
    for (const p of [path, truth, run]) {
      for (let k = first; p && k <= last && k < p.q.length; k++) {
        if (!Number.isFinite(p.q[k][c])) continue;
        low = Math.min(low, p.q[k][c]);
        high = Math.max(high, p.q[k][c]);
      }
    }
    if (!(low <= high)) [low, high] = this.app.ranges[c];
    const pad = Math.max(0.08 * (high - low), 1e-3);
    return [low - pad, high + pad];
  }
}

class EnergyPlot {
  constructor(canvas, app) {
    this.app = app;
    this.plot = new Plot(canvas, [50, 10, 6, 34]);
  }

  draw() {
    const { app, plot } = this, dt = app.model.timeStep, { path } = app.motion;
    plot.clear();
    const [first, last] = app.window(), zero = path.energyStart, lines = [[path.energy, colours.model, []]];
    if (app.system) lines.unshift([app.trueEnergy(), colours.truth, [5, 4]]);
    const from = Math.max(first, zero), until = (values) => Math.min(last + 1, values.length);
    let size = 1e-12;
    for (const [values] of lines) {
      for (let k = from; k < until(values); k++) size = Math.max(size, Math.abs(values[k] - values[zero]));
    }
    const power = Math.floor(Math.log10(1.15 * size)), unit = 10 ** power;
    plot.view(first * dt, last * dt, (-1.15 * size) / unit, (1.15 * size) / unit);
    const named = [power ? `10${raised(String(power))}` : "", app.energyUnit].filter(Boolean).join(" ");
    plot.axes(app.label("t"), `ΔE${named ? ` (${named})` : ""}`);
    plot.clipped(() => {
      for (const [values, colour, dash] of lines) {
        plot.line(until(values), (k) => [k * dt, (values[k] - values[zero]) / unit], colour, { dash, from });
      }
    });
  }
}
