"""`python -m dhn.cli`."""

import sys

from dhn.cli import main

sys.exit(main())
