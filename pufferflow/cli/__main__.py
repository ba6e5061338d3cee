"""``python -m pufferflow.cli``."""

from pufferflow.cli import main

raise SystemExit(main())
