"""Mechanics fitted from measured positions by the marginal likelihood of whole runs."""

from dhn.mechanics.fitting import fit_mechanics
from dhn.mechanics.model import Forecast, MechanicalModel, Smoothed, Stage

__all__ = ["Forecast", "MechanicalModel", "Smoothed", "Stage", "fit_mechanics"]
