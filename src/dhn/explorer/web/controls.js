// Buttons, sliders, readings and keys.

const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4, 8];
const KEYS = {
  " ": (app) => app.play(!app.playing),
  k: (app) => app.play(!app.playing),
  ".": (app) => app.step(),
  s: (app) => app.step(),
  r: (app) => app.reset(),
  "+": (app) => app.controls.faster(1),
  "-": (app) => app.controls.faster(-1),
  t: (app) => app.controls.switchTheme(),
  ArrowLeft: (app) => nudge(app, -1, 0),
  ArrowRight: (app) => nudge(app, 1, 0),
  ArrowUp: (app) => nudge(app, 0, 1),
  ArrowDown: (app) => nudge(app, 0, -1),
};

/** Move the present state of the shown degree of freedom by a hundredth of the portrait. */
function nudge(app, dq, dp) {
  const { q, p } = app.now(), i = app.portrait.part, width = ([a, b]) => (b - a) / 100;
  q[i] += dq * width(app.ranges[i]);
  p[i] += dp * width(app.ranges[app.d + i]);
  app.begin(q, p);
  app.released();
}

class Controls {
  constructor(app) {
    this.app = app;
    const { payload, model, codes } = app;
    const kind = model.linked ? "one network, implicit symplectic step" : "two networks, H⁺ and H⁻, steps";
    const unit = payload.units.t ? ` ${payload.units.t}` : "";
    const weights = model.parameters.toLocaleString("en");
    $("about").textContent = `${kind} of ${number(payload.time_step)}${unit}, ${weights} weights, run in this page`;
    $("play").onclick = () => app.play(!app.playing);
    $("step").onclick = () => app.step();
    $("reset").onclick = () => app.reset();
    $("slower").onclick = () => this.faster(-1);
    $("faster").onclick = () => this.faster(1);
    $("theme").onclick = () => this.switchTheme();
    this.fan("fan-state", "fanState");
    this.fan("fan-code", "fanCode");
    $("truth").onchange = (event) => {
      app.shows.truth = event.target.checked;
      app.changed = true;
      app.released();
    };
    this.runs();
    this.tabs();
    this.sliders = codes.probes.map((probe) => this.slider(probe));
    this.mapScale(codes.probes[0]);
    // A button that was clicked must not take the space bar away; one reached by Tab keeps it.
    document.addEventListener("click", (event) => {
      if (event.detail > 0 && event.target.tagName === "BUTTON") event.target.blur();
    });
    document.addEventListener("keydown", (event) => {
      const typing = ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName);
      const onButton = event.target.tagName === "BUTTON" && event.key === " ";
      if (typing || onButton || event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
      event.preventDefault();
      KEYS[event.key](app);
    });
  }

  fan(id, field) {
    $(id).oninput = (event) => {
      this.app[field] = +event.target.value;
      this.restored();
      this.app.newFan();
    };
    $(id).onchange = () => this.app.released();
  }

  runs() {
    const { app } = this, select = $("run");
    if (!app.runs.length) select.closest("label").hidden = true;
    app.runs.forEach((run, i) => {
      const shown = app.codes.probes.map((probe) => probe.name).filter((name) => name in run.params);
      const text = shown.map((name) => `${symbol(name)} = ${number(run.params[name], 3)}`).join(", ");
      select.add(new Option(`${run.id}${text ? `: ${text}` : ""}`, i));
    });
    select.onchange = () => {
      if (+select.value >= 0) app.chooseRun(+select.value);
      app.released();
    };
  }

  tabs() {
    const { app } = this, box = $("tabs");
    if (app.d === 1) return;
    const views = app.payload.names.map((name, i) => [String(i), symbol(name)]);
    if (app.d === 2) views.push(["section", "Poincaré section"]);
    for (const [view, text] of views) {
      const button = document.createElement("button");
      button.textContent = text;
      button.dataset.view = view;
      button.onclick = () => {
        app.show(view);
        app.released();
      };
      box.append(button);
    }
  }

  /** A slider for one parameter: it moves the code to where the probe reads that value. */
  slider(probe) {
    const label = document.createElement("label"), input = document.createElement("input");
    const text = document.createElement("span"), value = document.createElement("output");
    label.className = "slider";
    text.textContent = this.app.label(probe.name);
    Object.assign(input, { type: "range", min: probe.low, max: probe.high, step: (probe.high - probe.low) / 200 });
    input.id = `param-${probe.name}`;
    input.oninput = () => {
      const values = Object.fromEntries(this.sliders.map((s) => [s.probe.name, +s.input.value]));
      this.sliding = true;
      this.app.chooseCode(this.app.codes.codeFor(values));
      this.sliding = false;
    };
    input.onchange = () => this.app.released();
    label.append(text, input, value);
    $("params").append(label);
    return { probe, input, value };
  }

  /** What the colours of the map mean. */
  mapScale(probe) {
    $("map-note").textContent = "map of codes: each dot a training system";
    if (!probe) return;
    const scale = $("map-scale"), [low, high] = scale.querySelectorAll("output");
    scale.hidden = false;
    low.textContent = `${this.app.label(probe.name)} ${number(probe.low, 3)}`;
    high.textContent = number(probe.high, 3);
  }

  /** The probes' readings at a new code. */
  codeChanged() {
    const { app } = this, { codes } = app, z = app.motion.code.z;
    for (const { probe, input, value } of this.sliders) {
      const read = codes.read(probe, z);
      if (!this.sliding) input.value = read;
      const digits = Math.max(0, Math.min(8, Math.ceil(-Math.log10(probe.error || 1e-3))));
      value.textContent = `${tidy(read.toFixed(digits))} ± ${probe.error.toFixed(digits)}`;
    }
    const far = codes.nearest(app.u) / codes.spacing;
    $("code-note").textContent = far > 2 ? "far from every training code" : "";
  }

  started() {
    $("run").value = String(this.app.runIndex);
  }

  played() {
    $("play").textContent = this.app.playing ? "Pause" : "Play";
    $("play").setAttribute("aria-pressed", this.app.playing);
  }

  viewed() {
    const { app } = this, inSection = app.view === "section";
    for (const button of $("tabs").children) {
      button.setAttribute("aria-pressed", button.dataset.view === app.view);
    }
    const names = app.payload.names.map(symbol);
    $("portrait-title").textContent = inSection ? "Poincaré section" : "Phase portrait";
    const where = `where ${names[0]} passes ${number(app.section.plane, 3)} upwards`;
    $("portrait-note").textContent = inSection
      ? `${where}; touch to start another orbit of the same learned energy` : this.portraitNote();
  }

  portraitNote() {
    const { app } = this, parts = [];
    const others = app.d > 1 ? ", the other coordinates as at the start" : "";
    if (app.hasLevels) parts.push(`curves of equal learned energy${others}`);
    if (app.region) {
      const what = app.payload.region_is_training ? "training data" : "data";
      parts.push(`${what} in grey, shaded where there are none${app.d > 1 ? " in this projection" : ""}`);
    }
    return parts.join("; ");
  }

  faster(direction) {
    const i = SPEEDS.findIndex((v) => v >= this.app.speed - 1e-9);
    this.app.speed = SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, i + direction))];
    this.restored();
    this.app.released();
  }

  restored() {
    const { app } = this;
    $("speed").textContent = `×${app.speed}`;
    $("fan-state").value = app.fanState;
    $("fan-code").value = app.fanCode;
    $("fan-state-value").textContent = `± ${app.fanState} %`;
    $("fan-code-value").textContent = `± ${app.fanCode} %`;
    $("truth").checked = app.shows.truth;
    this.played();
  }

  switchTheme() {
    const root = document.documentElement;
    const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    root.dataset.theme = (root.dataset.theme || system) === "dark" ? "light" : "dark";
    this.themed();
  }

  themed() {
    readColours();
    this.app.changed = true;
  }

  /** Numbers that change with time. */
  readings() {
    const { app } = this, { path, truth } = app.motion, dt = app.model.timeStep;
    const { q, p } = app.now(), unit = app.payload.units.t ? ` ${app.payload.units.t}` : "";
    $("time").textContent = `t = ${(app.cursor * dt).toFixed(2)}${unit}`;
    const reading = (name, v) => `${symbol(name)} = ${number(v, 3)}`;
    const pair = (i) => `${reading(app.payload.names[i], q[i])}, ${reading(app.momentum(i), p[i])}`;
    $("state").textContent = q.map((_, i) => pair(i)).join("; ");
    const chip = $("inside");
    if (app.region) {
      const far = app.distance(q, p);
      chip.textContent = far <= 1 ? "inside the data" : far < 2.5 ? "at the edge of the data" : "outside the data";
      chip.className = `chip ${far < 2.5 ? "good" : "bad"}`;
    } else chip.hidden = true;
    this.energies(path);
    $("truth").closest("label").hidden = !app.system;
    $("key-truth").hidden = !app.system || !app.shows.truth;
    $("key-data").hidden = !app.motion.run;
    $("truth-note").textContent = app.system ? this.truthNote(path, truth, dt, unit) : "";
    if (path.ended) {
      const end = number((path.length - 1) * dt, 3);
      $("truth-note").textContent = `the model has no further step after t = ${end}${unit}`;
    }
  }

  /** How far the learned energy, and the true one of the predicted states, have drifted. */
  energies(path) {
    const { app } = this, zero = path.energyStart;
    const k = Math.max(zero, Math.min(Math.floor(app.cursor), path.energy.length - 1));
    if (k >= path.energy.length) return;
    const drift = (values) => {
      const change = values[k] - values[zero];
      const share = app.energyScale ? `, ${number((100 * change) / app.energyScale, 2)} % of the data's range` : "";
      return `ΔE = ${[number(change, 2), app.energyUnit].filter(Boolean).join(" ")}${share}`;
    };
    $("drift").textContent = `learned energy: ${drift(path.energy)}`;
    $("true-drift").textContent = app.system ? `true energy of the predicted states: ${drift(app.trueEnergy())}` : "";
  }

  truthNote(path, truth, dt, unit) {
    const { app } = this, parted = app.parting();
    const with_ = app.codes.probes.map(({ name }) => `${symbol(name)} = ${number(app.constants[name], 4)}`).join(", ");
    const until = parted === null
      ? `the model agrees up to t = ${number((Math.min(path.length, truth.length) - 1) * dt, 3)}${unit}`
      : `the model differs from t = ${number(parted * dt, 3)}${unit} on (by 10 % of the spread)`;
    return `true motion${with_ ? ` with ${with_}` : ""}: ${until}`;
  }
}
