#!/usr/bin/env bash
# The main job end to end: `make demo`, or `bash examples/demo.sh FOLDER` with dhn installed.
set -euo pipefail
out=${1:-demo}
mkdir -p "$out"
rm -rf "$out/model"
run() { echo; echo "\$ $*"; "$@"; }

# 0. A picture at once: a model of the package, to drag, without any training.
run dhn explore pretrained:single_pendulum -o "$out/first.html"
echo "The first picture is there: open $out/first.html and drag the pendulum."
# The same model forecasts new pendulums from 16 states.
run dhn simulate single_pendulum --trajectories 40 --seed 1 -o "$out/test.npz"
run dhn evaluate pretrained:single_pendulum "$out/test.npz" --observe 16 --plot "$out/first.png"

# 1. Pendulums of unknown length, from formulas, to learn from.
run dhn simulate single_pendulum --trajectories 600 --seed 0 -o "$out/train.npz"
run dhn inspect "$out/test.npz" --plot "$out/data.png"

# 2. Learn: the model is given neither the equations nor the lengths.
run dhn train "$out/train.npz" -o "$out/model" --budget "${BUDGET:-90s}"

# 3. Complete: 16 states of a new pendulum are seen, the 113 after them are predicted.
run dhn evaluate "$out/model" "$out/test.npz" --observe 16 --plot "$out/completion.png"
run dhn forecast "$out/model" "$out/test.npz" --observe 16 --steps 200 \
  -o "$out/forecast.csv"

# 4. Infer: how long is the pendulum?
run dhn infer "$out/model" "$out/test.npz" --target l -o "$out/lengths.csv"

# 5. Interpolate: every fourth state is kept, the others are predicted.
run dhn interpolate "$out/model" "$out/test.npz" --factor 4 --thin -o "$out/fine.npz"
run dhn inspect "$out/fine.npz" --plot "$out/interpolation.png"

# 6. Reconstruct: positions of every eighth state alone, no momenta; the rest comes out.
python - "$out/test.npz" "$out/holes.csv" << 'PYTHON'
import sys

import numpy as np

import dhn

test = dhn.read(sys.argv[1])
seen = np.broadcast_to(np.arange(test.states) % 8 == 0, test.q.shape[:2])
holes = test.replace(q=np.where(seen[..., None], test.q, np.nan), p=None, known=seen)
dhn.write(holes, sys.argv[2])
PYTHON
run dhn reconstruct "$out/model" "$out/holes.csv" -o "$out/filled.csv"

# 7. A page in which the model runs, to drag and to share.
run dhn explore "$out/model" "$out/test.npz" -o "$out/explore.html"

# 8. One page about all of it.
run dhn report "$out/model" "$out/test.npz" --train "$out/train.npz" \
  -o "$out/report.html"

echo
echo "The pictures, the model and the report are in $out/; open $out/report.html."
