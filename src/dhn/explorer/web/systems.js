// The built-in systems' true equations (systems/library/), and where their bodies are.

const SYSTEMS = {
  single_pendulum: {
    H: (q, p, c) => p[0] ** 2 / (2 * c.m * c.l ** 2) + c.m * c.g * c.l * (1 - Math.cos(q[0])),
    lengths: (c) => [c.l],
  },
  double_pendulum: { H: (q, p, c) => chainEnergy(q, p, [c.l1, c.l2], [c.m1, c.m2], c.g), lengths: (c) => [c.l1, c.l2] },
  triple_pendulum: {
    H: (q, p, c) => chainEnergy(q, p, [c.l1, c.l2, c.l3], [c.m1, c.m2, c.m3], c.g),
    lengths: (c) => [c.l1, c.l2, c.l3],
  },
  mass_spring: {
    H: (q, p, c) => p[0] ** 2 / (2 * c.m) + 0.5 * c.k * q[0] ** 2,
    line: true,
  },
  coupled_oscillators: {
    H: (q, p, c) => (p[0] ** 2 + p[1] ** 2) / (2 * c.m) + 0.5 * c.k * (q[0] ** 2 + q[1] ** 2)
      + 0.5 * c.coupling * (q[1] - q[0]) ** 2,
    line: true,
  },
  elastic_pendulum: {
    H: (q, p, c) => p[0] ** 2 / (2 * c.m) + p[1] ** 2 / (2 * c.m * q[0] ** 2)
      - c.m * c.g * q[0] * Math.cos(q[1]) + 0.5 * c.k * (q[0] - c.l) ** 2,
    elastic: true,
  },
  henon_heiles: {
    H: (q, p, c) => 0.5 * (p[0] ** 2 + p[1] ** 2 + q[0] ** 2 + q[1] ** 2)
      + c.strength * (q[0] ** 2 * q[1] - q[1] ** 3 / 3),
  },
  charged_particle: {
    H(q, p, c) {
      const half = 0.5 * c.charge * c.field;
      return ((p[0] + half * q[1]) ** 2 + (p[1] - half * q[0]) ** 2) / (2 * c.m);
    },
  },
  kepler: { H: (q, p, c) => gravityEnergy(q, p, [c.m1, c.m2], c.G) },
  three_body: { H: (q, p, c) => gravityEnergy(q, p, [c.m1, c.m2, c.m3], c.G) },
};

/** A chain of pendulums: `p·M⁻¹p/2 + V`, with the mass matrix of its angles. */
function chainEnergy(q, p, l, m, g) {
  const n = q.length;
  const below = (i) => m.slice(i).reduce((a, b) => a + b, 0);
  const M = l.map((li, i) => l.map((lj, j) => below(Math.max(i, j)) * li * lj * Math.cos(q[i] - q[j])));
  const v = solveLinear(M, p);
  let energy = 0;
  for (let i = 0; i < n; i++) energy += 0.5 * p[i] * v[i] - below(i) * g * l[i] * Math.cos(q[i]);
  return energy;
}

function gravityEnergy(q, p, m, G) {
  let energy = 0;
  m.forEach((mi, i) => {
    energy += (p[2 * i] ** 2 + p[2 * i + 1] ** 2) / (2 * mi);
    for (let j = 0; j < i; j++) {
      energy -= (G * mi * m[j]) / Math.hypot(q[2 * i] - q[2 * j], q[2 * i + 1] - q[2 * j + 1]);
    }
  });
  return energy;
}

const DIFFERENCE = 1e-5;  // of a central difference: errors of 1e-10, round-off as small
const SUBSTEP = 0.01;  // seconds at most, for Runge-Kutta: errors below 1e-8 a motion

/** Hamilton's equations by differences of the energy; `gamma` damps the momenta. */
function velocityOf(H, x, constants) {
  const d = x.length / 2, out = new Float64Array(2 * d);
  const q = x.subarray(0, d), p = x.subarray(d), gamma = constants.gamma || 0;
  const slope = (a, i) => {
    const kept = a[i];
    a[i] = kept + DIFFERENCE;
    const up = H(q, p, constants);
    a[i] = kept - DIFFERENCE;
    const down = H(q, p, constants);
    a[i] = kept;
    return (up - down) / (2 * DIFFERENCE);
  };
  for (let i = 0; i < d; i++) {
    out[i] = slope(p, i);
    out[d + i] = -slope(q, i) - gamma * p[i];
  }
  return out;
}

/** The true state after `time`, by the classical Runge-Kutta method. */
function trueStep(H, q, p, constants, time) {
  const d = q.length, steps = Math.ceil(time / SUBSTEP), h = time / steps;
  let x = Float64Array.from([...q, ...p]);
  const moved = (k, f) => x.map((v, i) => v + f * k[i]);
  for (let s = 0; s < steps; s++) {
    const a = velocityOf(H, x, constants), b = velocityOf(H, moved(a, h / 2), constants);
    const c = velocityOf(H, moved(b, h / 2), constants), e = velocityOf(H, moved(c, h), constants);
    x = x.map((v, i) => v + (h / 6) * (a[i] + 2 * b[i] + 2 * c[i] + e[i]));
  }
  return { q: Array.from(x.subarray(0, d)), p: Array.from(x.subarray(d)) };
}

/** The true system of the payload, if all its constants are known for this code; else null. */
function trueSystem(name, constants, d) {
  const system = SYSTEMS[name];
  if (!system) return null;
  // A constant that is not known makes the energy of any state NaN.
  const q = Array.from({ length: d }, (_, i) => 0.1 + 0.2 * i);
  return Number.isFinite(system.H(q, q, constants)) ? system : null;
}
