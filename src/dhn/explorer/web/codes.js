// Codes: the Gaussian of the training codes, the probes that read a parameter, and the way back.

const NEIGHBOURHOOD = 0.08;  // of a parameter's range: the width of the local fit of codes

class Codes {
  constructor(payload) {
    const { codes } = payload;
    this.mean = unpack(codes.mean);
    this.basis = unpack(codes.basis);  // (k, r)
    this.training = unpack(codes.training);  // (n, r), whitened
    this.count = this.training.shape[0];
    this.size = this.basis.shape[1];
    this.constants = codes.constants;
    this.params = Object.fromEntries(Object.entries(codes.params).map(([k, v]) => [k, unpack(v)]));
    this.probes = Object.entries(codes.probes).map(([name, probe]) => this.readProbe(name, probe));
    // Half the training codes have another one within this distance.
    this.spacing = this.typicalSpacing();
  }

  readProbe(name, probe) {
    const values = this.params[name];
    return {
      name,
      low: Math.min(...values),
      high: Math.max(...values),
      error: probe.error,
      intercept: probe.intercept,
      slope: unpack(probe.slope),
      bend: probe.bend && {
        centres: unpack(probe.bend.centres), weights: unpack(probe.bend.weights), width: probe.bend.width,
      },
    };
  }

  typicalSpacing() {
    const found = [];
    for (let i = 0; i < this.count; i += Math.ceil(this.count / 200)) {
      found.push(this.nearest(row(this.training, i), i));
    }
    return found.sort((a, b) => a - b)[Math.floor(0.95 * (found.length - 1))] || 1;
  }

  /** Distance from whitened `u` to the nearest training code, other than number `except`. */
  nearest(u, except = -1) {
    let best = Infinity;
    for (let i = 0; i < this.count; i++) {
      if (i === except) continue;
      let s = 0;
      for (let a = 0; a < this.size; a++) s += (u[a] - this.training[i * this.size + a]) ** 2;
      best = Math.min(best, s);
    }
    return Math.sqrt(best);
  }

  /** Whitened coordinates to the network's code. */
  code(u) {
    return this.mean.map((m, i) => m + dot(row(this.basis, i), u));
  }

  /** Network code to whitened coordinates, by least squares. */
  whiten(z) {
    const r = this.size, k = this.mean.length;
    const column = (a) => Array.from({ length: k }, (_, i) => this.basis[i * r + a]);
    const columns = Array.from({ length: r }, (_, a) => column(a));
    const away = z.map((v, i) => v - this.mean[i]);
    // A direction without variance has no coordinate.
    const normal = columns.map((a, i) => columns.map((b, j) => dot(a, b) + (i === j ? 1e-300 : 0)));
    return Float64Array.from(solveLinear(normal, columns.map((a) => dot(a, away))), (v) => v || 0);
  }

  /** A parameter as the probe reads it off a network code. */
  read(probe, z) {
    let value = probe.intercept + dot(probe.slope, z);
    if (probe.bend) {
      const { centres, weights, width } = probe.bend;
      weights.forEach((w, i) => {
        const c = row(centres, i);
        let s = 0;
        for (let a = 0; a < z.length; a++) s += (z[a] - c[a]) ** 2;
        value += w * Math.exp(-s / (2 * width * width));
      });
    }
    return value;
  }

  /** All constants of the system that this code stands for. */
  constantsOf(z) {
    const read = this.probes.map((probe) => [probe.name, this.read(probe, z)]);
    return { ...this.constants, ...Object.fromEntries(read) };
  }

  /** The code at which the probes read these parameters, among codes like the training ones. */
  codeFor(values) {
    const aim = { ...values };
    let u = this.localCode(aim);
    for (let k = 0; k < 4; k++) {
      const read = this.constantsOf(this.code(u));
      for (const { name } of this.probes) aim[name] += values[name] - read[name];
      u = this.localCode(aim);
    }
    return u;
  }

  /** A local linear fit of the training codes by their parameters. */
  localCode(values) {
    const names = this.probes.map((probe) => probe.name);
    const scale = this.probes.map((probe) => (probe.high - probe.low) * NEIGHBOURHOOD);
    const size = names.length + 1;
    const normal = Array.from({ length: size }, (_, i) => Array.from({ length: size }, (_, j) => (i === j ? 1e-9 : 0)));
    const right = Array.from({ length: size }, () => new Float64Array(this.size));
    for (let i = 0; i < this.count; i++) {
      const away = names.map((name, j) => (this.params[name][i] - values[name]) / scale[j]);
      const weight = Math.exp(-dot(away, away) / 2) + 1e-12;
      const line = [1, ...away];
      line.forEach((a, x) => {
        line.forEach((b, y) => (normal[x][y] += weight * a * b));
        for (let c = 0; c < this.size; c++) right[x][c] += weight * a * this.training[i * this.size + c];
      });
    }
    return Float64Array.from({ length: this.size }, (_, c) => solveLinear(normal, right.map((r) => r[c]))[0]);
  }

  /** A point of the map: its two coordinates, the others as training codes near by have them. */
  codeAt(x, y) {
    const u = new Float64Array(this.size), width = 2 * this.spacing + 0.02;
    let total = 1e-30;
    for (let i = 0; i < this.count; i++) {
      const t = row(this.training, i);
      const s = (t[0] - x) ** 2 + (this.size > 1 ? (t[1] - y) ** 2 : 0);
      const weight = Math.exp(-s / (2 * width * width));
      total += weight;
      for (let a = 2; a < this.size; a++) u[a] += weight * t[a];
    }
    for (let a = 2; a < this.size; a++) u[a] /= total;
    u[0] = x;
    if (this.size > 1) u[1] = y;
    return u;
  }
}
