"""Blocks, windows, masks and noise: pure array logic without parameters."""

from dhn.blocks.masks import MaskPattern as MaskPattern
from dhn.blocks.masks import autoregressive as autoregressive
from dhn.blocks.masks import autoregressive_text as autoregressive_text
from dhn.blocks.masks import draw_known as draw_known
from dhn.blocks.masks import get_mask as get_mask
from dhn.blocks.masks import mixture as mixture
from dhn.blocks.masks import random_half as random_half
from dhn.blocks.masks import register_mask as register_mask
from dhn.blocks.masks import superresolution as superresolution
from dhn.blocks.noise import corrupt as corrupt
from dhn.blocks.noise import corrupt_nearby as corrupt_nearby
from dhn.blocks.noise import draw_any_level as draw_any_level
from dhn.blocks.noise import draw_noise_level as draw_noise_level
from dhn.blocks.noise import no_noise as no_noise
from dhn.blocks.noise import noise_levels as noise_levels
from dhn.blocks.noise import rung_above as rung_above
from dhn.blocks.noise import select as select
from dhn.blocks.noise import unknown_level as unknown_level
from dhn.blocks.spec import BlockSpec as BlockSpec
from dhn.blocks.state import Known as Known
from dhn.blocks.state import NoiseLevel as NoiseLevel
from dhn.blocks.state import StateBlock as StateBlock
from dhn.blocks.windows import complete_windows as complete_windows
from dhn.blocks.windows import cut_windows as cut_windows
from dhn.blocks.windows import window_starts as window_starts
