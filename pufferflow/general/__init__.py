"""Pufferfish privacy in general (Song et al., section 2): any finite secrets, pairs and scenarios, given as data."""

from pufferflow.general.adversary import Distance, ScenarioDistance
from pufferflow.general.databases import GroupSensitivity
from pufferflow.general.framework import PufferfishFramework
from pufferflow.general.sensitivity import WassersteinSensitivity

__all__ = ["Distance", "GroupSensitivity", "PufferfishFramework", "ScenarioDistance", "WassersteinSensitivity"]
