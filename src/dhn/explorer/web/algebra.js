// Small linear algebra and random numbers.

/** Solve `A x = y` by elimination with pivots; `A` is an array of rows. NaN where it is singular. */
function solveLinear(A, y) {
  const n = y.length;
  const rows = A.map((r, i) => [...r, y[i]]);
  for (let c = 0; c < n; c++) {
    let best = c;
    for (let r = c + 1; r < n; r++) if (Math.abs(rows[r][c]) > Math.abs(rows[best][c])) best = r;
    [rows[c], rows[best]] = [rows[best], rows[c]];
    for (let r = 0; r < n; r++) {
      if (r === c) continue;
      const f = rows[r][c] / rows[c][c];
      for (let k = c; k <= n; k++) rows[r][k] -= f * rows[c][k];
    }
  }
  return rows.map((r, i) => r[n] / r[i]);
}

/** Columns of the Jacobian of `f` at `x`, by central differences, as an array of rows. */
function jacobian(f, x, size = 1e-5) {
  const columns = Array.from(x, (_, j) => {
    const up = Float64Array.from(x), down = Float64Array.from(x);
    up[j] += size;
    down[j] -= size;
    const a = f(up), b = f(down);
    return Array.from(a, (v, i) => (v - b[i]) / (2 * size));
  });
  return columns[0].map((_, i) => columns.map((c) => c[i]));
}

/** Least squares `min |f(x)|²` by Levenberg-Marquardt; returns the best `x`. */
function leastSquares(f, start, iterations = 20) {
  let x = Float64Array.from(start), r = f(x), damping = 1e-6;
  const size = (v) => v.reduce((s, e) => s + e * e, 0);
  for (let i = 0; i < iterations; i++) {
    const J = jacobian(f, x), n = x.length;
    const normal = Array.from({ length: n }, (_, a) =>
      Array.from({ length: n }, (_, b) => J.reduce((s, line) => s + line[a] * line[b], 0)));
    const right = Array.from({ length: n }, (_, a) => J.reduce((s, line, k) => s + line[a] * r[k], 0));
    const lifted = normal.map((line, a) => line.map((v, b) => v + (a === b ? damping : 0)));
    const move = solveLinear(lifted, right);
    const next = x.map((v, a) => v - move[a]), left = f(next);
    if (size(left) < size(r)) {
      const gain = size(r) - size(left);
      x = next;
      r = left;
      damping = Math.max(damping / 10, 1e-12);
      if (gain <= 1e-9 * size(r) || move.every((v) => Math.abs(v) < 1e-10)) break;
    } else {
      damping *= 30;
      if (damping > 1e3) break;
    }
  }
  return x;
}

/** Reproducible normal numbers: mulberry32 and Box-Muller. */
function normalNumbers(seed) {
  let a = (seed + 0x9e3779b9) >>> 0;
  const uniform = () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
}
