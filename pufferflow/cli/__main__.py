"""``python -m pufferflow.cli``."""

import sys

from pufferflow.cli import main

if __name__ == "__main__":
    sys.exit(main())
