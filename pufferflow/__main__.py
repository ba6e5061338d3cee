"""``python -m pufferflow``."""

from pufferflow.cli import main

raise SystemExit(main())
