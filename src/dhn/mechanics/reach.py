"""How far ahead fitted mechanics are valid, by their bands on the validation part."""

import numpy as np
from jaxtyping import Int

from dhn.mechanics.bands import Bands
from dhn.mechanics.predicting import Mechanics
from dhn.mechanics.windows import Windows, forecasts
from dhn.trajectories.validity import LEVEL, Validity, valid_until


def reach(
    mechanics: Mechanics, bands: Bands, windows: Windows, systems: Int[np.ndarray, " n"]
) -> Validity:
    """The times until which forecasts of the windows are valid, no further than the windows reach.

    Arguments: mechanics; bands; windows: of the validation part; systems: (n,) of each window.
    Returns: times in the data's units.
    """
    found = forecasts(mechanics, windows, systems)
    ahead = np.broadcast_to(windows.ahead, found.mean.shape[:2])
    half = bands.half_width(bands.spread(found), ahead, LEVEL)
    deviation = []
    for piece, truth in zip(windows.pieces, windows.truth, strict=True):
        seen = np.where(piece.seen > 0, piece.y, np.nan)
        deviation.append(np.nanstd(np.concatenate([seen, truth]), axis=0))
    scaled = valid_until(ahead, half, np.array(deviation))
    return Validity(scaled.until * mechanics.scale.time, scaled.beyond)
