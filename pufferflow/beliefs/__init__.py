"""Adversaries whose belief lies outside the family."""

from pufferflow.beliefs.adversary import CloseAdversary, close_adversary

__all__ = ["CloseAdversary", "close_adversary"]
