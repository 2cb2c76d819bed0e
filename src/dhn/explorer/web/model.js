// The block map (models/stage.py and models/denoise.py), in scaled units inside, physical outside.

const CONVERGED = 1e-13;  // of the scaled momenta: some hundred times round-off
const QUASI_NEWTON = 24, NEWTON = 16;  // iterations, as many as never were needed in trials

class Model {
  constructor(payload) {
    const { form, scaler } = payload;
    Object.assign(this, form);
    this.dim = payload.names.length;
    this.timeStep = payload.time_step;
    this.lag = form.stride * payload.time_step;
    this.qShift = scaler.q_shift;
    this.qScale = scaler.q_scale;
    this.pScale = scaler.p_scale;
    this.action = scaler.q_scale[0] * scaler.p_scale[0];
    this.nets = form.networks.map((net) => new ScalarNetwork(net, form.periods, form.block_size));
    this.slope = form.damping && unpack(form.damping.slope);
  }

  get parameters() {
    return this.nets.reduce((n, net) => n + net.parameters, 0);
  }

  /** What depends on the code alone. */
  forCode(z) {
    const none = Array(this.block_size).fill(0);
    const rate = this.damping
      ? (this.damping.base + this.slope.reduce((s, v, i) => s + v * z[i], 0)) / this.timeStep : 0;
    return {
      z: Float64Array.from(z),
      growth: Math.exp(rate * this.lag),
      clean: this.nets.map((net) => net.condition(none, none, z)),
    };
  }

  /** Physical state (d numbers each) to scaled, and back; blocks repeat the coordinates. */
  scaleState(q, p) {
    const c = (i) => i % this.dim;
    return {
      q: Float64Array.from(q, (v, i) => (v - this.qShift[c(i)]) / this.qScale[c(i)]),
      p: Float64Array.from(p, (v, i) => v / this.pScale[c(i)]),
    };
  }

  physical(state) {
    const c = (i) => i % this.dim;
    return {
      q: Array.from(state.q, (v, i) => v * this.qScale[c(i)] + this.qShift[c(i)]),
      p: Array.from(state.p, (v, i) => v * this.pScale[c(i)]),
    };
  }

  /** The `stride` scaled states after a context of `block_size`; `memory` carries the solver's. */
  advance(context, code, memory) {
    const n = this.block_size * this.dim, first = n - this.stride * this.dim;
    const found = this.linked ? this.solve(context, code, memory) : this.denoise(context, code);
    return { q: found.q.subarray(first, n), p: found.p.subarray(first, n) };
  }

  /** The context one advance later. */
  slide(context, next) {
    const cut = this.stride * this.dim;
    const join = (a, b) => {
      const out = new Float64Array(a.length);
      out.set(a.subarray(cut));
      out.set(b, a.length - cut);
      return out;
    };
    return { q: join(context.q, next.q), p: join(context.p, next.p) };
  }

  /** One network: `P = p - ∂h⁺/∂Q(q, P)`, then `Q = q + ∂h⁺/∂P`. */
  solve(source, code, memory) {
    const net = this.nets[0], n = source.q.length, base = code.clean[0];
    const residual = (P) => {
      net.evaluate(source.q, P, base);
      return Float64Array.from(P, (v, i) => v + this.scale * net.dQ[i] - source.p[i]);
    };
    let P = quasiNewton(residual, source.p, memory);
    if (!P) P = newton(residual, source.p);
    net.evaluate(source.q, P, base);
    const Q = Float64Array.from(source.q, (v, i) => v + this.scale * net.dP[i]);
    // The action over the step: H⁺ = <p_target, q_target> - action.
    memory.action = this.scale * (dot(P, net.dP) - net.value);
    return { q: Q, p: P.map((v) => v / code.growth) };
  }

  /** Two networks: clean rounds of H⁺ and H⁻ from a straight continuation of the context. */
  denoise(context, code) {
    const { dim, scale, stride } = this, n = context.q.length, cut = stride * dim, known = n - cut;
    const [right, left] = this.nets;
    const target = this.slide(context, this.continueStraight(context));
    for (let round = 0; round < this.rounds; round++) {
      right.evaluate(context.q, target.p.map((v) => v * code.growth), code.clean[0]);
      for (let i = known; i < n; i++) target.q[i] = context.q[i] + scale * right.dP[i];
      left.evaluate(target.q, context.p, code.clean[1]);
      for (let i = known; i < n; i++) target.p[i] = (context.p[i] - scale * left.dQ[i]) / code.growth;
    }
    return target;
  }

  continueStraight(context) {
    const { dim, stride } = this;
    const line = (a) => Float64Array.from({ length: stride * dim }, (_, i) => {
      const last = a.length - dim + (i % dim);
      const slope = a.length > dim ? a[last] - a[last - dim] : 0;
      return a[last] + (Math.floor(i / dim) + 1) * slope;
    });
    return { q: line(context.q), p: line(context.p) };
  }

  /** How far a window (scaled, block + stride states) is from the model's clean equations. */
  residuals(q, p, code) {
    const n = this.block_size * this.dim, cut = this.stride * this.dim, { scale } = this;
    const source = { q: q.subarray(0, n), p: p.subarray(0, n) };
    const target = { q: q.subarray(cut, cut + n), p: p.subarray(cut, cut + n) };
    const grown = target.p.map((v) => v * code.growth), out = [];
    const [right, left] = this.nets;
    right.evaluate(source.q, grown, code.clean[0]);
    for (let i = 0; i < n; i++) {
      out.push((source.q[i] + scale * right.dP[i] - target.q[i]) / scale);
      out.push((grown[i] + scale * right.dQ[i] - source.p[i]) / scale);
    }
    if (left) {
      left.evaluate(target.q, source.p, code.clean[1]);
      for (let i = 0; i < n; i++) {
        out.push((target.q[i] - scale * left.dP[i] - source.q[i]) / scale);
        out.push((source.p[i] - scale * left.dQ[i] - grown[i]) / scale);
      }
    }
    return out;
  }

  /** The context that ends with one scaled state: earlier states fit the clean equations best. */
  contextOf(state, code) {
    if (this.block_size === 1) return state;
    const { dim, block_size: b } = this, size = (b + this.stride) * dim;
    const unknown = [...Array(b + this.stride).keys()].filter((i) => i !== b - 1);
    const lay = (x) => {
      const q = new Float64Array(size), p = new Float64Array(size);
      q.set(state.q, (b - 1) * dim);
      p.set(state.p, (b - 1) * dim);
      unknown.forEach((token, j) => {
        q.set(x.subarray(2 * j * dim, (2 * j + 1) * dim), token * dim);
        p.set(x.subarray((2 * j + 1) * dim, (2 * j + 2) * dim), token * dim);
      });
      return { q, p };
    };
    const start = Float64Array.from(unknown.flatMap(() => [...state.q, ...state.p]));
    const best = leastSquares((x) => {
      const w = lay(x);
      return this.residuals(w.q, w.p, code);
    }, start);
    const window = lay(best);
    return { q: window.q.slice(0, b * dim), p: window.p.slice(0, b * dim) };
  }

  /** Energy of one scaled state, in physical units, up to a constant of the code.
   *
   *  The generating function of a flow over a lag is `lag · H + lag²/2 · ∂H/∂q·∂H/∂p + ...` at
   *  `(q_source, p_target)`, so `h⁺` and its gradient give H with an error of order lag². */
  energy(state, code) {
    if (this.block_size === 1) return this.generated(state.q, state.p, code, -1);
    const context = this.contextOf(state, code);
    return this.energyOn(context, this.slide(context, this.advance(context, code, {})), code);
  }

  /** Energy of a block on a motion. Its momenta are one stride later, hence the other sign. */
  energyOn(context, after, code) {
    return this.generated(context.q, after.p.map((v) => v * code.growth), code, 1);
  }

  generated(Q, P, code, sign) {
    const net = this.nets[0], { scale } = this;
    net.evaluate(Q, P, code.clean[0]);
    const cross = scale * scale * dot(net.dQ, net.dP);
    return (this.action * (scale * net.value + (sign * cross) / 2)) / (this.block_size * this.lag);
  }
}

/** Broyden's method, beginning as plain iteration; null if it does not converge. */
function quasiNewton(residual, guess, memory) {
  const n = guess.length;
  let B = memory.inverse || identity(n);
  let x = Float64Array.from(guess, (v, i) => v + (memory.change ? memory.change[i] : 0));
  let r = residual(x);
  for (let k = 0; k < QUASI_NEWTON; k++) {
    if (small(r, x)) {
      memory.inverse = B;
      memory.change = x.map((v, i) => v - guess[i]);
      return x;
    }
    const dx = B.map((line) => -dot(line, r));
    x = x.map((v, i) => v + dx[i]);
    const next = residual(x), dr = next.map((v, i) => v - r[i]);
    const Bdr = B.map((line) => dot(line, dr));
    const size = dot(dx, Bdr);
    if (!(Math.abs(size) > 0)) break;
    const left = identity(n).map((_, j) => dx.reduce((s, v, i) => s + v * B[i][j], 0));
    B = B.map((line, i) => line.map((v, j) => v + ((dx[i] - Bdr[i]) * left[j]) / size));
    r = next;
  }
  memory.inverse = memory.change = undefined;
  // The last step may have been at round-off already.
  return small(r, x) ? x : null;
}

/** Newton's method from the guess, with a Jacobian of differences. */
function newton(residual, guess) {
  let x = Float64Array.from(guess);
  for (let k = 0; k < NEWTON; k++) {
    const r = residual(x);
    if (small(r, x)) return x;
    const move = solveLinear(jacobian(residual, x), r);
    x = x.map((v, i) => v - move[i]);
  }
  return small(residual(x), x, 1e4) ? x : x.fill(NaN);
}

function small(r, x, slack = 1) {
  let size = 1, error = 0;
  for (let i = 0; i < r.length; i++) {
    size = Math.max(size, Math.abs(x[i]));
    error = Math.max(error, Math.abs(r[i]));
    if (Number.isNaN(r[i])) return false;
  }
  return error <= slack * CONVERGED * size;
}

const identity = (n) => Array.from({ length: n }, (_, i) => Array.from({ length: n }, (_, j) => +(i === j)));

function dot(a, b) {
  let s = 0;
  for (let i = 0; i < a.length; i++) s += a[i] * b[i];
  return s;
}
