"""The paper's experiments and the baselines they compare with; the product never imports it."""

from dhn.reproduction import baselines as baselines
from dhn.reproduction import estimators as estimators  # so that `load` knows baselines
