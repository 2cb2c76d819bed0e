"""Independent work as folders: `dhn reproduce` and `dhn sweep`, in local processes or on SLURM."""
