"""Differentially private mechanisms for independent records: the classical ground the rest stands on."""
