"""Settings of all tests."""

import os
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

# helper modules that tests in other folders share
sys.path.insert(0, str(Path(__file__).parent / "reference"))

_always = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("ci", derandomize=True, max_examples=60, **_always)
settings.register_profile("thorough", derandomize=False, max_examples=1000, **_always)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
