// Packed arrays of the payload (explorer/arrays.py) as Float64Array with a shape.

function unpack(packed) {
  const bytes = Uint8Array.from(atob(packed.data), (c) => c.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  const wide = packed.dtype === "f8";
  const values = new Float64Array(bytes.length / (wide ? 8 : 4));
  for (let i = 0; i < values.length; i++) {
    values[i] = wide ? view.getFloat64(8 * i, true) : view.getFloat32(4 * i, true);
  }
  values.shape = packed.shape;
  return values;
}

/** Row `i` of a matrix, without copying. */
function row(matrix, i) {
  const width = matrix.shape[1];
  return matrix.subarray(i * width, (i + 1) * width);
}
