#!/usr/bin/env bash
# The example sweep of docs/cluster.md: nine trainings, their table and figure.
#
#   bash examples/sweep.sh FOLDER [OPTIONS OF dhn sweep]
#
# With `--executor slurm` the trainings are jobs of a SLURM cluster. The figure is
# FOLDER/sweep/sweep.png; docs/sweep.png is a copy of it.
set -eu

folder=${1:?a folder for data and results}
shift
mkdir -p "$folder"
cd "$folder"
dhn simulate single_pendulum --trajectories 100 --steps 64 --seed 0 -o train.npz
dhn simulate single_pendulum --trajectories 20 --steps 64 --seed 1 -o test.npz
dhn sweep train.npz -o sweep --over width=16,32,64 --over seed=0,1,2 --steps 1000 \
  --validation test.npz "$@"
dhn sweep status sweep
