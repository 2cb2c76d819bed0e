// A canvas with axes: device pixels, colours of the theme, ticks, and pointer handling.

const colours = {};

/** Read the theme's colours from the style sheet. */
function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["ink", "quiet", "grid", "panel", "model", "truth", "data", "outside", "level", "warn"]) {
    colours[name] = style.getPropertyValue(`--${name}`).trim();
  }
}

class Plot {
  /** `margin`: left, right, top, bottom in CSS pixels. */
  constructor(canvas, margin = [46, 10, 8, 30]) {
    this.canvas = canvas;
    this.g = canvas.getContext("2d");
    this.margin = margin;
    this.resize();
  }

  resize() {
    const box = this.canvas.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
    this.width = Math.max(box.width, 10);
    this.height = Math.max(box.height, 10);
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.g.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  clear() {
    this.g.clearRect(0, 0, this.width, this.height);
    this.g.lineJoin = "round";
    this.g.font = "11px system-ui, sans-serif";
  }

  /** Use a part of the canvas for coordinates x0..x1, y0..y1; `same` keeps one scale for both. */
  view(x0, x1, y0, y1, { same = false, top = 0, bottom = this.height } = {}) {
    const [left, right, above, below] = this.margin;
    const box = { x: left, y: top + above, w: this.width - left - right, h: bottom - top - above - below };
    let sx = box.w / (x1 - x0), sy = box.h / (y1 - y0);
    if (same) sx = sy = Math.min(sx, sy);
    const cx = (x0 + x1) / 2, cy = (y0 + y1) / 2;
    this.box = box;
    this.range = [x0, x1, y0, y1];
    this.x = (v) => box.x + box.w / 2 + (v - cx) * sx;
    this.y = (v) => box.y + box.h / 2 - (v - cy) * sy;
    this.atX = (v) => (v - box.x - box.w / 2) / sx + cx;
    this.atY = (v) => cy - (v - box.y - box.h / 2) / sy;
    this.unit = sx;
  }

  clipped(draw) {
    const { g, box } = this;
    g.save();
    g.beginPath();
    g.rect(box.x, box.y, box.w, box.h);
    g.clip();
    draw(g);
    g.restore();
  }

  axes(xLabel, yLabel, { xAngle = false, yAngle = false, xTicks = true } = {}) {
    const { g, box } = this, [x0, x1, y0, y1] = this.range;
    g.strokeStyle = colours.grid;
    g.fillStyle = colours.quiet;
    g.lineWidth = 1;
    g.beginPath();
    g.textAlign = "center";
    g.textBaseline = "top";
    for (const [v, text] of ticks(x0, x1, box.w / 70, xAngle)) {
      g.moveTo(this.x(v), box.y);
      g.lineTo(this.x(v), box.y + box.h);
      if (xTicks) g.fillText(text, this.x(v), box.y + box.h + 4);
    }
    g.textAlign = "right";
    g.textBaseline = "middle";
    for (const [v, text] of ticks(y0, y1, Math.max(box.h / 40, 2.2), yAngle)) {
      g.moveTo(box.x, this.y(v));
      g.lineTo(box.x + box.w, this.y(v));
      g.fillText(text, box.x - 5, this.y(v));
    }
    g.stroke();
    g.strokeStyle = colours.quiet;
    g.strokeRect(box.x, box.y, box.w, box.h);
    g.fillStyle = colours.ink;
    g.textAlign = "center";
    g.textBaseline = "bottom";
    if (xTicks) g.fillText(xLabel, box.x + box.w / 2, box.y + box.h + this.margin[3]);
    g.save();
    g.translate(11, box.y + box.h / 2);
    g.rotate(-Math.PI / 2);
    g.textBaseline = "middle";
    g.fillText(yLabel, 0, 0);
    g.restore();
  }

  /** A line through `count` points `at(i) = [x, y]`; it breaks where `apart` says so. */
  line(count, at, style, { width = 1.6, dash = [], alpha = 1, apart = () => false, from = 0 } = {}) {
    const { g } = this;
    g.save();
    g.globalAlpha = alpha;
    g.strokeStyle = style;
    g.lineWidth = width;
    g.setLineDash(dash);
    g.beginPath();
    let last = null;
    for (let i = from; i < count; i++) {
      const point = at(i);
      const draw = last !== null && !apart(last, point);
      if (draw) g.lineTo(this.x(point[0]), this.y(point[1]));
      else g.moveTo(this.x(point[0]), this.y(point[1]));
      last = point;
    }
    g.stroke();
    g.restore();
  }

  dot(x, y, radius, fill, { stroke = null, alpha = 1, width = 2 } = {}) {
    const { g } = this;
    g.save();
    g.globalAlpha = alpha;
    g.beginPath();
    g.arc(this.x(x), this.y(y), radius, 0, 2 * Math.PI);
    if (fill) {
      g.fillStyle = fill;
      g.fill();
    }
    if (stroke) {
      g.strokeStyle = stroke;
      g.lineWidth = width;
      g.stroke();
    }
    g.restore();
  }

  /** Dragging. `grab(x, y, tap)` in CSS pixels returns whether it takes hold there; the page
   *  scrolls under a finger that takes hold of nothing, and a tap is offered with `tap` true. */
  draggable(grab, move, drop = () => {}) {
    const { canvas } = this;
    const at = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    let held = false;
    canvas.addEventListener("touchstart", (event) => {
      if (grab(...at(event.touches[0]), false)) event.preventDefault();
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      const tap = event.pointerType === "mouse";
      if (!grab(...at(event), tap)) return;
      held = true;
      canvas.setPointerCapture(event.pointerId);
      move(...at(event));
    });
    canvas.addEventListener("pointermove", (event) => {
      canvas.style.cursor = held ? "grabbing" : grab(...at(event), false) ? "grab" : "";
      if (held) move(...at(event));
    });
    const end = () => {
      if (held) drop();
      held = false;
    };
    canvas.addEventListener("pointerup", end);
    canvas.addEventListener("pointercancel", end);
    canvas.addEventListener("click", (event) => {
      if (event.pointerType !== "mouse" && !grab(...at(event), false) && grab(...at(event), true)) {
        move(...at(event));
        drop();
      }
    });
  }
}

/** Round numbers between two values, about `count` of them; multiples of π for angles. */
function ticks(low, high, count, angle = false) {
  const unit = angle && high - low > 2 ? Math.PI : 1;
  const rough = (high - low) / unit / Math.max(count, 1.5);
  const power = 10 ** Math.floor(Math.log10(rough));
  let step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= 0.7 * rough);
  if (unit !== 1) step = [0.25, 0.5, 1, 2, 5, 10, 20, 50, 100].find((s) => s >= 0.8 * rough) || step;
  const found = [];
  for (let k = Math.ceil(low / unit / step - 1e-9); k * step <= high / unit + 1e-9; k++) {
    found.push([k * step * unit, unit === 1 ? short(k * step, step) : multipleOfPi(k * step)]);
  }
  return found;
}

function multipleOfPi(v) {
  if (v === 0) return "0";
  const sign = v < 0 ? "−" : "", size = Math.abs(v);
  const text = { 0.25: "π/4", 0.5: "π/2", 0.75: "3π/4", 1: "π", 1.5: "3π/2" }[size];
  return sign + (text || `${short(size, 0.01)}π`);
}

/** A tick's number, with as many digits as its step needs. */
function short(v, step) {
  if (v === 0) return "0";
  if (Math.abs(v) < 1e-3 || Math.abs(v) >= 1e5) return tidy(v.toExponential(1));
  return tidy(String(+v.toFixed(Math.max(0, Math.ceil(-Math.log10(step) + 0.3)))));
}

/** A number for reading: three or four digits. */
function number(v, digits = 4) {
  if (!Number.isFinite(v)) return "–";
  if (v === 0) return "0";
  const size = Math.abs(v);
  return tidy(size < 1e-3 || size >= 1e5 ? v.toExponential(digits - 2) : String(+v.toPrecision(digits)));
}

/** A number's text with true minus signs and powers of ten. */
function tidy(text) {
  const [digits, power] = text.split("e");
  const tail = power === undefined ? "" : ` · 10${raised(power.replace("+", ""))}`;
  return digits.replace("-", "−") + tail;
}

const raised = (text) => [...text].map((c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[+c])).join("");

const GREEK = {
  alpha: "α", beta: "β", gamma: "γ", theta: "θ", lambda: "λ", mu: "μ", omega: "ω", phi: "φ", psi: "ψ",
};

/** A name as a physicist writes it: theta1 is θ₁, p_theta1 is p(θ₁) as p with an index. */
function symbol(name) {
  const momentum = /^([pv])_(.+)$/.exec(name);
  if (momentum) return `${momentum[1]}(${symbol(momentum[2])})`;
  const parts = /^([A-Za-z_]+?)(\d*)$/.exec(name);
  if (!parts) return name;
  return (GREEK[parts[1]] || parts[1]) + [...parts[2]].map((c) => "₀₁₂₃₄₅₆₇₈₉"[+c]).join("");
}

const turn = (v) => v - 2 * Math.PI * Math.floor((v + Math.PI) / (2 * Math.PI));
