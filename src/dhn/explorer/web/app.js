// The page: one start, one code, a clock; everything else follows from them.

const FAN = 14;  // motions
const FRAME = 12;  // milliseconds of work a frame
const PARTED = 0.1;  // of the spread of a coordinate: prediction and truth are apart
const STEPS_PER_SECOND = 12.8;  // at speed 1, where the time step is no time to watch

const $ = (id) => document.getElementById(id);

class App {
  constructor(payload) {
    this.payload = payload;
    this.d = payload.names.length;
    this.model = new Model(payload);
    this.codes = new Codes(payload);
    this.tasks = new Tasks();
    this.region = payload.region && { states: unpack(payload.region.states), radius: payload.region.radius };
    this.runs = payload.runs.map((run) => this.readRun(run)).filter((run) => run.q.length > 1);
    this.ranges = this.findRanges();
    this.spread = this.findSpread();
    const longest = Math.max(128, ...this.runs.map((run) => run.q.length));
    this.horizon = Math.min(400, 2 * longest);
    // Blocks need a search for the states before every point of the grid.
    this.hasLevels = this.d === 1 || this.model.block_size === 1;
    this.energyUnit = this.findEnergyUnit();
    const seconds = payload.units.t === "s" && payload.time_step > 0.01 && payload.time_step < 0.3;
    this.stepsPerSecond = seconds ? 1 / payload.time_step : STEPS_PER_SECOND;
    Object.assign(this, {
      u: new Float64Array(this.codes.size), cursor: 0, playing: false, speed: 1, fanState: 3, fanCode: 3,
      shows: { truth: true }, view: "0", changed: true, motion: null, runIndex: -1,
    });
    this.portrait = new Portrait($("portrait"), this);
    this.section = new Section(this);
    this.scene = new Scene($("scene"), this);
    this.series = new Series($("series"), this);
    this.energyPlot = new EnergyPlot($("energy"), this);
    this.map = new CodeMap($("map"), this);
    this.controls = new Controls(this);
    this.restore();
  }

  // Facts about the data -----------------------------------------------------------------------

  readRun(run) {
    const q = unpack(run.q), p = unpack(run.p), rows = [...Array(q.shape[0]).keys()];
    const good = (i) => [...row(q, i), ...row(p, i)].every(Number.isFinite);
    const first = rows.findIndex(good);
    const kept = first < 0 ? [] : rows.slice(first);
    const upTo = kept.findIndex((i) => !good(i));
    const used = upTo < 0 ? kept : kept.slice(0, upTo);
    return { ...run, code: unpack(run.code), q: used.map((i) => [...row(q, i)]), p: used.map((i) => [...row(p, i)]) };
  }

  findRanges() {
    const { d, model, region } = this, ranges = [];
    for (let c = 0; c < 2 * d; c++) {
      const i = c % d, isQ = c < d;
      if (isQ && this.payload.angles[i]) {
        ranges.push([-Math.PI, Math.PI]);
        continue;
      }
      let [low, high] = isQ
        ? [model.qShift[i] - 2 * model.qScale[i], model.qShift[i] + 2 * model.qScale[i]]
        : [-2 * model.pScale[i], 2 * model.pScale[i]];
      if (region) {
        const values = Array.from({ length: region.states.shape[0] }, (_, k) => row(region.states, k)[c]);
        [low, high] = values.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);
      }
      if (!isQ) [low, high] = [-Math.max(-low, high), Math.max(-low, high)];
      const pad = 0.18 * (high - low) || 1;
      ranges.push([low - pad, high + pad]);
    }
    return ranges;
  }

  findSpread() {
    const { d, model, region } = this;
    return Array.from({ length: 2 * d }, (_, c) => {
      if (!region) return c < d ? model.qScale[c] : model.pScale[c - d];
      const n = region.states.shape[0], value = (k) => region.states[k * 2 * d + c];
      let mean = 0, square = 0;
      for (let k = 0; k < n; k++) mean += value(k) / n;
      for (let k = 0; k < n; k++) square += (value(k) - mean) ** 2 / n;
      return Math.sqrt(square);
    });
  }

  findEnergyUnit() {
    const { units, names } = this.payload;
    const pair = `${units[names[0]] || ""}|${units[`p_${names[0]}`] || ""}|${units.t || ""}`;
    return ["rad|kg m²/s|s", "m|kg m/s|s"].includes(pair) ? "J" : "";
  }

  momentum(i) {
    const name = this.payload.names[i];
    return `v_${name}` in this.payload.units && !(`p_${name}` in this.payload.units) ? `v_${name}` : `p_${name}`;
  }

  label(name) {
    const unit = this.payload.units[name];
    return symbol(name) + (unit ? ` (${unit})` : "");
  }

  /** Distance from a physical state to the training states, in units of their own. */
  distance(q, p) {
    const { region, model, d } = this, { states, radius } = region;
    let best = Infinity;
    for (let k = 0; k < states.shape[0]; k++) {
      let s = 0;
      for (let i = 0; i < d; i++) {
        const away = q[i] - states[k * 2 * d + i];
        s += ((this.payload.angles[i] ? turn(away) : away) / model.qScale[i]) ** 2;
        s += ((p[i] - states[k * 2 * d + d + i]) / model.pScale[i]) ** 2;
      }
      if (s < best) best = s;
    }
    return Math.sqrt(best) / radius;
  }

  // What the user does -------------------------------------------------------------------------

  /** A new motion from this state, with the present code unless another is given. */
  begin(q, p, { code = this.motion.code, run = null } = {}) {
    const z = code.z, sameLevels = this.d === 1 && this.motion && this.motion.code === code;
    // Where a trajectory has its own parameters, they are better than the probe's readings.
    this.constants = { ...this.codes.constantsOf(z), ...(run ? run.params : {}) };
    this.system = trueSystem(this.payload.system, this.constants, this.d);
    const path = new Prediction(this.model, code, q, p);
    const truth = this.system && new Truth(this.system, this.constants, q, p, this.model.timeStep);
    this.motion = { code, path, truth, run, fan: [], exact: [] };
    if (!run) this.runIndex = -1;
    this.cursor = 0;
    this.section.begin(path);
    this.tasks.stop("section");
    this.newFan();
    if (!sameLevels) this.portrait.newLevels();
    this.controls.started();
    this.changed = true;
  }

  newFan() {
    const fan = (this.motion.fan = []), shares = { state: this.fanState / 100, code: this.fanCode / 100 };
    if (shares.state || shares.code) this.tasks.start("fan", openFan(this, fan, shares, FAN, this.horizon + 1));
    else this.tasks.stop("fan");
    this.changed = true;
  }

  chooseCode(u, { q, p, run = null } = {}) {
    this.u = Float64Array.from(u);
    const code = this.model.forCode(this.codes.code(this.u)), start = this.motion && this.motion.path;
    this.section.clear();
    this.begin(q || start.q[0], p || start.p[0], { code, run });
    this.energyScale = this.findEnergyScale();
    this.controls.codeChanged();
  }

  chooseRun(index) {
    const run = this.runs[index];
    this.runIndex = index;
    this.chooseCode(this.codes.whiten(run.code), { q: run.q[0], p: run.p[0], run });
    this.runIndex = index;
    this.controls.started();
  }

  /** The range of learned energies of the training states, from the 5th to the 95th in 100. */
  findEnergyScale() {
    const { region, model, d } = this;
    if (!region || model.block_size > 1) return null;
    const n = region.states.shape[0], values = [];
    for (let k = 0; k < n; k += Math.ceil(n / 200)) {
      const s = row(region.states, k);
      values.push(model.energy(model.scaleState([...s.subarray(0, d)], [...s.subarray(d)]), this.motion.code));
    }
    values.sort((a, b) => a - b);
    return values[Math.floor(0.95 * (values.length - 1))] - values[Math.floor(0.05 * (values.length - 1))];
  }

  released() {
    writeAddress(this);
  }

  reset() {
    this.cursor = 0;
    this.section.clear();
    this.begin(this.motion.path.q[0], this.motion.path.p[0], { run: this.motion.run });
  }

  seek(step) {
    this.cursor = Math.max(0, Math.min(step, this.motion.path.length - 1));
    this.changed = true;
  }

  step() {
    this.play(false);
    const next = Math.floor(this.cursor + 1e-9) + 1;
    for (const _ of this.motion.path.extend(next + 1));
    this.seek(next);
    writeAddress(this);
  }

  play(on) {
    this.playing = on;
    this.controls.played();
    if (!on) writeAddress(this);
  }

  show(view) {
    this.view = view;
    if (view !== "section" && this.portrait.part !== +view) {
      this.portrait.part = +view;
      this.portrait.levels = null;
      this.portrait.newLevels();
    }
    this.controls.viewed();
    this.changed = true;
  }

  // What is shown ------------------------------------------------------------------------------

  /** The model's state at the present time. */
  now() {
    return stateAt(this.motion.path, this.cursor);
  }

  /** Steps that the plots over time show. */
  window() {
    const first = Math.max(0, Math.round(this.cursor - this.horizon / 2));
    return [first, first + this.horizon];
  }

  /** The true energy along the predicted path. */
  trueEnergy() {
    const { path, exact } = this.motion;
    while (exact.length < path.length) {
      exact.push(this.system.H(path.q[exact.length], path.p[exact.length], this.constants));
    }
    return exact;
  }

  /** The first step at which prediction and truth are clearly apart; null if they are not yet. */
  parting() {
    const { path, truth } = this.motion;
    for (let k = 0; truth && k < Math.min(path.length, truth.length); k++) {
      if (path.q[k].some((v, i) => Math.abs(v - truth.q[k][i]) > PARTED * this.spread[i])) return k;
    }
    return null;
  }

  frame(elapsed) {
    const { motion, tasks } = this, { path, truth } = motion;
    if (this.playing) {
      this.cursor += (elapsed / 1000) * this.stepsPerSecond * this.speed;
      if (path.ended && this.cursor >= path.length - 1) this.play(false);
      this.changed = true;
    }
    const ahead = Math.ceil(Math.max(this.horizon, this.cursor + this.horizon / 2)) + 2;
    if (!tasks.has("path") && !path.ended && path.length < ahead) tasks.start("path", path.extend(ahead));
    if (truth && !tasks.has("truth") && !truth.ended && truth.length < ahead) tasks.start("truth", truth.extend(ahead));
    if (this.view === "section" && !tasks.has("section") && this.section.unfinished) {
      tasks.start("section", this.section.extend());
    }
    // A long section may take most of the time while nothing else moves.
    if (tasks.work(this.view === "section" && !this.playing ? 3 * FRAME : FRAME)) this.changed = true;
    this.cursor = Math.min(this.cursor, path.length - 1);
    if (this.changed) this.draw();
    this.changed = false;
  }

  draw() {
    this.scene.draw();
    if (this.view === "section") this.section.draw();
    else this.portrait.draw();
    this.series.draw();
    this.energyPlot.draw();
    this.map.draw();
    this.controls.readings();
  }

  resize() {
    for (const part of [this.scene, this.portrait, this.series, this.energyPlot, this.map]) part.plot.resize();
    this.changed = true;
  }

  /** Begin where the address says, else with the first trajectory, else somewhere sensible. */
  restore() {
    const asked = readAddress(this);
    for (const [key, name] of [["speed", "speed"], ["state", "fanState"], ["code", "fanCode"]]) {
      if (asked[key] >= 0) this[name] = asked[key];
    }
    if (asked.truth !== undefined) this.shows.truth = asked.truth === 1;
    if (asked.q && asked.p && asked.u) this.chooseCode(asked.u, { q: asked.q, p: asked.p });
    else if (this.runs.length) this.chooseRun(0);
    else {
      const { model, d } = this;
      this.chooseCode(new Float64Array(this.codes.size), {
        q: Array.from({ length: d }, (_, i) => model.qShift[i] + model.qScale[i]), p: Array(d).fill(0),
      });
    }
    const views = [...Array(this.d).keys(), ...(this.d === 2 ? ["section"] : [])].map(String);
    this.show(views.includes(asked.view) ? asked.view : "0");
    if (asked.t > 0) {
      for (const _ of this.motion.path.extend(Math.ceil(asked.t) + 2));
      this.seek(asked.t);
    }
    this.controls.restored();
  }
}

function main() {
  readColours();
  const app = new App(JSON.parse($("payload").textContent));
  let last = performance.now();
  const loop = (time) => {
    app.frame(Math.min(time - last, 100));
    last = time;
    requestAnimationFrame(loop);
  };
  requestAnimationFrame(loop);
  new ResizeObserver(() => app.resize()).observe(document.querySelector("main"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => app.controls.themed());
  window.addEventListener("hashchange", () => app.restore());
  // For tests and the curious.
  window.explorer = { app, SYSTEMS, velocityOf, rollOut: (q, p, z, steps) => rollOut(app.model, q, p, z, steps) };
}

main();
