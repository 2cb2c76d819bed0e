"""A page that runs a trained model in the browser: drag a state, see the predicted motion."""

from dhn.explorer.export import can_run as can_run
from dhn.explorer.page import build_page as build_page
from dhn.explorer.page import write_explorer as write_explorer
