#!/usr/bin/env bash
# From a file as an instrument writes it to a forecast with error bars and a report:
# `bash examples/measured.sh FOLDER` with dhn installed. BUDGET=20s makes it quick and rough.
set -euo pipefail
out=${1:-measured}
mkdir -p "$out"
rm -rf "$out/model"
run() { echo; echo "\$ $*"; "$@"; }

# 1. A measurement, made up: a damped pendulum filmed for two minutes. Angles in degrees with noise,
#    times that are not even, two stretches lost, no velocities, no masses.
python - "$out/swing.csv" << 'PYTHON'
import sys

import numpy as np

import dhn

rng = np.random.default_rng(0)
run = dhn.simulate(
    "single_pendulum", 1, seed=0, params={"l": 0.25, "g": 9.81}, initial={"theta": 1.2},
    damping=0.02, times=np.arange(6000) / 50 + rng.uniform(0, 0.004, 6000),
)
rows = np.stack([run.times[0], np.degrees(run.q[0, :, 0]) + 0.1 * rng.normal(size=6000)], axis=1)
rows = np.delete(rows, np.r_[1500:1540, 4000:4030], axis=0)
np.savetxt(sys.argv[1], rows, delimiter=",", header="time [s], angle [deg]", fmt="%.4f")
PYTHON

# 2. Import: onto a grid, the last part kept for the test.
run dhn import "$out/swing.csv" --q theta=angle --dt 0.04 --split 0.6,0.2,0.2 \
  -o "$out/swing.npz"

# 3. Learn: mechanics are fitted to the positions; the validation part chooses and sets the bars.
run dhn train "$out/swing-train.npz" -o "$out/model" --budget "${BUDGET:-2m}"

# 4. Forecast with error bars, and see how good it is on what was kept.
run dhn forecast "$out/model" "$out/swing-test.npz" --observe 32 --steps 50 \
  -o "$out/forecast.csv"
run dhn evaluate "$out/model" "$out/swing-test.npz" --observe 32

# 5. The most probable motion through the noise and over the gaps.
run dhn denoise "$out/model" "$out/swing-validation.npz" -o "$out/smooth.csv"

# 6. One page about all of it.
run dhn report "$out/model" -o "$out/report.html"

echo
echo "Everything is in $out/; open $out/report.html."
