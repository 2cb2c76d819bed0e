// The scalar network (models/networks/mlp.py): value and gradient of one block.

const ACTIVATIONS = {
  // Each returns the value and leaves the slope in `slope[0]`.
  tanh(x, slope) {
    const y = Math.tanh(x);
    slope[0] = 1 - y * y;
    return y;
  },
  silu(x, slope) {
    const s = 1 / (1 + Math.exp(-x));
    slope[0] = s * (1 + x * (1 - s));
    return x * s;
  },
  gelu(x, slope) {
    const c = Math.sqrt(2 / Math.PI);
    const t = Math.tanh(c * (x + 0.044715 * x * x * x));
    slope[0] = 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x);
    return 0.5 * x * (1 + t);
  },
};

class ScalarNetwork {
  /** `periods`: network units per radian of each periodic coordinate, null for the others. */
  constructor(packed, periods, block) {
    const [embed, bias, weights, biases, readout] = ["embed", "embed_bias", "weights", "biases", "readout"]
      .map((name) => unpack(packed[name]));
    this.block = block;
    this.dim = periods.length;
    this.periods = periods;
    this.width = bias.length;
    this.depth = weights.shape[0];
    this.tokenSize = this.dim + periods.filter((unit) => unit !== null).length;
    this.stateInputs = 2 * block * this.tokenSize;
    Object.assign(this, { embed, bias, weights, biases, readout });
    this.transposed = this.transpose(weights);
    this.activation = ACTIVATIONS[packed.activation];
    this.form = packed.form && { matrix: unpack(packed.form.matrix), slope: unpack(packed.form.slope) };
    const w = this.width, n = block * this.dim;
    this.x = new Float64Array(this.stateInputs);
    this.h = new Float64Array(w);
    this.slopes = new Float64Array(this.depth * w);
    this.g = new Float64Array(w);
    this.t = new Float64Array(w);
    this.slope = new Float64Array(1);
    this.dQ = new Float64Array(n);
    this.dP = new Float64Array(n);
    this.value = 0;
  }

  get parameters() {
    const sizes = [this.embed, this.bias, this.weights, this.biases, this.readout].map((a) => a.length);
    const form = this.form ? this.form.matrix.length + this.form.slope.length : 0;
    return sizes.reduce((a, b) => a + b, form);
  }

  transpose(weights) {
    const w = this.width, out = new Float64Array(weights.length);
    for (let l = 0; l < this.depth; l++) {
      for (let i = 0; i < w; i++) {
        for (let o = 0; o < w; o++) out[(l * w + o) * w + i] = weights[(l * w + i) * w + o];
      }
    }
    return out;
  }

  /** What noise levels and code add to the first layer: the same for all states of a system. */
  condition(levelQ, levelP, z) {
    const rest = [...levelQ, ...levelP, ...z], base = Float64Array.from(this.bias), w = this.width;
    rest.forEach((v, i) => {
      for (let o = 0; o < w; o++) base[o] += v * this.embed[(this.stateInputs + i) * w + o];
    });
    return base;
  }

  /** The scalar at `(Q, P)`, its gradient into `dQ` and `dP`; all of length block · dim. */
  evaluate(Q, P, base) {
    const { x, h, slopes, g, t, slope, width: w, depth, embed, dim, block, tokenSize: f } = this;
    for (let token = 0, i = 0; token < block; token++) {
      for (let c = 0; c < dim; c++) {
        const q = Q[token * dim + c], unit = this.periods[c];
        if (unit === null) x[i++] = q;
        else {
          x[i++] = Math.sin(q / unit);
          x[i++] = Math.cos(q / unit);
        }
      }
    }
    for (let token = 0; token < block; token++) {
      for (let c = 0; c < dim; c++) x[(block + token) * f + c] = P[token * dim + c];
    }
    h.set(base);
    for (let i = 0; i < x.length; i++) {
      const v = x[i];
      if (v !== 0) for (let o = 0; o < w; o++) h[o] += v * embed[i * w + o];
    }
    for (let l = 0; l < depth; l++) {
      multiply(this.transposed, l * w * w, h, t, w);
      for (let o = 0; o < w; o++) {
        t[o] = this.activation(t[o] + this.biases[l * w + o], slope);
        slopes[l * w + o] = slope[0];
      }
      for (let o = 0; o < w; o++) h[o] += t[o];
    }
    let value = 0;
    for (let o = 0; o < w; o++) value += h[o] * this.readout[o];
    g.set(this.readout);
    const product = h;  // the values are no longer needed
    for (let l = depth - 1; l >= 0; l--) {
      for (let o = 0; o < w; o++) t[o] = g[o] * slopes[l * w + o];
      multiply(this.weights, l * w * w, t, product, w);
      for (let o = 0; o < w; o++) g[o] += product[o];
    }
    const byInput = (i) => {
      let s = 0;
      for (let o = 0; o < w; o++) s += embed[i * w + o] * g[o];
      if (this.form) {
        const { matrix, slope: a } = this.form, m = a.length;
        s += a[i];
        for (let j = 0; j < m; j++) s += (matrix[i * m + j] + matrix[j * m + i]) * x[j];
      }
      return s;
    };
    for (let token = 0, i = 0; token < block; token++) {
      for (let c = 0; c < dim; c++) {
        const k = token * dim + c, unit = this.periods[c];
        if (unit === null) this.dQ[k] = byInput(i++);
        else {
          const sine = x[i], cosine = x[i + 1];
          this.dQ[k] = (byInput(i) * cosine - byInput(i + 1) * sine) / unit;
          i += 2;
        }
        this.dP[k] = byInput((block + token) * f + c);
      }
    }
    if (this.form) {
      const { matrix, slope: a } = this.form, m = a.length;
      for (let i = 0; i < m; i++) {
        value += a[i] * x[i];
        for (let j = 0; j < m; j++) value += x[i] * matrix[i * m + j] * x[j];
      }
    }
    this.value = value;
  }
}

/** `out = M v` for the square matrix that begins at `offset`; four sums hide the latency. */
function multiply(M, offset, v, out, w) {
  for (let o = 0; o < w; o++) {
    let k = offset + o * w, a = 0, b = 0, c = 0, d = 0, i = 0;
    for (; i + 3 < w; i += 4, k += 4) {
      a += M[k] * v[i];
      b += M[k + 1] * v[i + 1];
      c += M[k + 2] * v[i + 2];
      d += M[k + 3] * v[i + 3];
    }
    for (; i < w; i++, k++) a += M[k] * v[i];
    out[o] = a + b + (c + d);
  }
}
