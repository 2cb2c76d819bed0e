import sys
from pathlib import Path

# `small.py` beside the tests is shared by them.
sys.path.insert(0, str(Path(__file__).parent))
