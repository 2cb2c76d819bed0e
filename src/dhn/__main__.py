"""`python -m dhn`."""

import sys

from dhn.cli import main

if __name__ == "__main__":
    sys.exit(main())
