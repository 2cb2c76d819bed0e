"""The paper's experiments and the baselines they compare with; the product never imports it."""

from dhn.reproduction import baselines as baselines
