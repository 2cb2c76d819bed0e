#!/usr/bin/env bash
# The main job end to end: `make demo`, or `bash examples/demo.sh FOLDER` with dhn installed.
set -euo pipefail
out=${1:-demo}
mkdir -p "$out"
run() { echo; echo "\$ $*"; "$@"; }

# 1. Trajectories: the paper's double pendulum, and a pendulum measured with faults.
run dhn systems
run dhn simulate double_pendulum --trajectories 1000 --seed 0 -o "$out/double_pendulum.npz"
run dhn simulate single_pendulum --trajectories 20 --seed 1 --noise 0.02 --gaps 0.1 \
  -o "$out/measured.csv"

# 2. A look at them.
run dhn inspect "$out/double_pendulum.npz" --plot "$out/double_pendulum.png"
run dhn inspect "$out/measured.csv" --plot "$out/measured.png"

echo
echo "The results are in $out/."
