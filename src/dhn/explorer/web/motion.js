// Motions from one start: the model's, the true one, and a fan of possible ones.

const STENCIL = [4 / 5, -1 / 5, 4 / 105, -1 / 280];  // central differences of order 8

/** A growing path: states one time step apart. */
class Path {
  constructor(q, p) {
    this.q = [q];
    this.p = [p];
    this.energy = [];
    this.ended = false;
  }

  get length() {
    return this.q.length;
  }

  push(q, p) {
    // A state that left all bounds ends the path: there is nothing to draw beyond.
    if (![...q, ...p].every((v) => Math.abs(v) < 1e6)) this.ended = true;
    else {
      this.q.push(q);
      this.p.push(p);
    }
  }
}

/** The model's path from a physical state; `extend` yields after every advance. */
class Prediction extends Path {
  constructor(model, code, q, p, withEnergy = true) {
    super([...q], [...p]);
    this.model = model;
    this.code = code;
    this.memory = {};
    this.context = model.contextOf(model.scaleState(q, p), code);
    this.withEnergy = withEnergy;
    this.actions = [];
    // Energy from the action needs one symplectic map; else it is read off the network.
    this.byAction = model.linked && model.block_size === 1 && !model.damping;
  }

  /** The step at which `energy` begins. */
  get energyStart() {
    return this.byAction ? STENCIL.length : 0;
  }

  advance() {
    const { model, code, context } = this, d = model.dim;
    const next = model.advance(context, code, this.memory);
    const after = model.slide(context, next);
    if (this.withEnergy && !this.byAction) this.note(after);
    this.context = after;
    const states = model.physical(next);
    for (let i = 0; i < model.stride && !this.ended; i++) {
      this.push(states.q.slice(i * d, (i + 1) * d), states.p.slice(i * d, (i + 1) * d));
    }
    if (this.withEnergy && this.byAction && !this.ended) {
      this.actions.push(model.action * this.memory.action);
      this.noteByAction();
    }
  }

  /** Energy `p·dq/dt - dA/dt` of the motion that passes through the states (A is the action).
   *
   *  A symplectic map is very nearly the flow of one energy if its step is short against the
   *  motion; derivatives are central differences of order 8. */
  noteByAction() {
    const reach = STENCIL.length, k = this.length - 1 - reach, { q, p, actions } = this;
    if (k < reach) return;
    let energy = 0;
    STENCIL.forEach((weight, j) => {
      const a = k + j + 1, b = k - j - 1;
      let action = 0;
      for (let i = b; i < a; i++) action += actions[i];
      energy += weight * (p[k].reduce((s, v, c) => s + v * (q[a][c] - q[b][c]), 0) - action);
    });
    this.energy[k] = energy / this.model.timeStep;
  }

  /** The energy at the context's last state; once for every advance. */
  note(after) {
    const { model, code, context } = this, d = model.dim;
    const last = (a) => a.subarray(a.length - d);
    const energy = model.block_size === 1
      ? model.energy({ q: last(context.q), p: last(context.p) }, code)
      : model.energyOn(context, after, code);
    for (let i = 0; i < model.stride; i++) this.energy.push(energy);
  }

  *extend(length) {
    while (!this.ended && this.length < length) {
      this.advance();
      yield;
    }
  }
}

/** `steps` advances from a physical context of `block_size` states: `{q, p}`, one row a state. */
function rollOut(model, q, p, z, steps) {
  const code = model.forCode(z), memory = {}, d = model.dim, out = { q: [], p: [] };
  let context = model.scaleState(q.flat(), p.flat());
  for (let k = 0; k < steps; k++) {
    const next = model.advance(context, code, memory), states = model.physical(next);
    context = model.slide(context, next);
    for (let i = 0; i < model.stride; i++) {
      out.q.push(states.q.slice(i * d, (i + 1) * d));
      out.p.push(states.p.slice(i * d, (i + 1) * d));
    }
  }
  return out;
}

/** The true path of a known system. */
class Truth extends Path {
  constructor(system, constants, q, p, timeStep) {
    super([...q], [...p]);
    Object.assign(this, { system, constants, timeStep });
  }

  *extend(length) {
    while (!this.ended && this.length < length) {
      const last = this.length - 1;
      const next = trueStep(this.system.H, this.q[last], this.p[last], this.constants, this.timeStep);
      this.push(next.q, next.p);
      yield;
    }
  }
}

/** Motions from starts and codes drawn around the chosen ones, into `fan`; yields often.
 *
 *  `shares`: standard deviations of state and code, as shares of their spread in training. */
function* openFan(app, fan, shares, count, length) {
  const { model, codes, spread, u, d } = app, { path } = app.motion;
  const normal = normalNumbers(app.payload.seed);
  for (let k = 0; k < count; k++) {
    const draw = (values, spreads) => values.map((v, i) => v + shares.state * spreads[i] * normal());
    const q = draw(path.q[0], spread), p = draw(path.p[0], spread.slice(d));
    const code = model.forCode(codes.code(u.map((v) => v + shares.code * normal())));
    fan.push(new Prediction(model, code, q, p, false));
    yield;
  }
  // All together, so that the fan opens evenly.
  for (let n = 2; n <= length; n++) {
    for (const one of fan) yield* one.extend(n);
  }
}
