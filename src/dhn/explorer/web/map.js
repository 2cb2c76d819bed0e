// The map of codes: training systems as dots, the present one as a handle.

class CodeMap {
  constructor(canvas, app) {
    this.app = app;
    this.plot = new Plot(canvas, [8, 8, 8, 8]);
    const { codes } = app;
    const all = (a) => Array.from({ length: codes.count }, (_, i) => row(codes.training, i)[a] || 0);
    const reach = (values) => [Math.min(...values, -0.5) - 0.5, Math.max(...values, 0.5) + 0.5];
    this.range = [...reach(all(0)), ...reach(codes.size > 1 ? all(1) : [0])];
    this.plot.draggable(
      (x, y, tap) => tap || (this.plot.x && Math.hypot(this.plot.x(app.u[0]) - x, this.plot.y(app.u[1] || 0) - y) < 28),
      (x, y) => app.chooseCode(codes.codeAt(this.plot.atX(x), this.plot.atY(y))),
      () => app.released(),
    );
  }

  draw() {
    const { app, plot } = this, { codes } = app, probe = codes.probes[0];
    plot.clear();
    plot.view(...this.range);
    plot.clipped((g) => {
      g.strokeStyle = colours.grid;
      g.strokeRect(plot.box.x, plot.box.y, plot.box.w, plot.box.h);
    });
    for (let i = 0; i < codes.count; i++) {
      const t = row(codes.training, i);
      const colour = probe ? this.shade(probe, codes.params[probe.name][i]) : colours.data;
      plot.dot(t[0], t[1] || 0, 2.6, colour, { alpha: 0.85 });
    }
    plot.dot(app.u[0], app.u[1] || 0, 8, colours.model, { stroke: colours.panel });
  }

  /** From violet to yellow over the parameter's range (a coarse viridis). */
  shade(probe, value) {
    const stops = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
    const f = Math.max(0, Math.min(0.9999, (value - probe.low) / (probe.high - probe.low))) * 4;
    const [a, b] = [stops[Math.floor(f)], stops[Math.floor(f) + 1]];
    return `rgb(${a.map((v, i) => Math.round(v + (f % 1) * (b[i] - v))).join()})`;
  }
}
