// Level curves of a function on a grid, by marching squares.

/** Segments of the curve `value = level`; `grid` has `n × n` values, row after row. */
function levelSegments(grid, n, level) {
  const found = [];
  const edge = (a, b, va, vb) => a + ((level - va) / (vb - va)) * (b - a);
  for (let r = 0; r + 1 < n; r++) {
    for (let c = 0; c + 1 < n; c++) {
      const v00 = grid[r * n + c], v10 = grid[r * n + c + 1];
      const v01 = grid[(r + 1) * n + c], v11 = grid[(r + 1) * n + c + 1];
      const points = [];
      if (v00 < level !== v10 < level) points.push([edge(c, c + 1, v00, v10), r]);
      if (v10 < level !== v11 < level) points.push([c + 1, edge(r, r + 1, v10, v11)]);
      if (v01 < level !== v11 < level) points.push([edge(c, c + 1, v01, v11), r + 1]);
      if (v00 < level !== v01 < level) points.push([c, edge(r, r + 1, v00, v01)]);
      for (let i = 0; i + 1 < points.length; i += 2) found.push([points[i], points[i + 1]]);
    }
  }
  return found;
}

/** Energies on a grid over a portrait of coordinate `i`, the others as in `state`; yields often. */
function* energyGrid(model, code, state, i, [x0, x1, y0, y1], n, done) {
  const grid = new Float64Array(n * n), q = [...state.q], p = [...state.p];
  for (let r = 0; r < n; r++) {
    for (let c = 0; c < n; c++) {
      q[i] = x0 + ((x1 - x0) * c) / (n - 1);
      p[i] = y0 + ((y1 - y0) * r) / (n - 1);
      grid[r * n + c] = model.energy(model.scaleState(q, p), code);
      if (model.block_size > 1 || c % 8 === 0) yield;
    }
  }
  done(grid);
}
