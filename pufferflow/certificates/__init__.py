"""Noise scales with a program that :mod:`pufferflow.verify` follows to a bound of the loss.

A certificate is a JSON object; probabilities, ε and the scale are exact numbers, written as
strings::

    {"certificate": "pufferflow", "version": 2, "mechanism": "mqm-exact" | …, "family": FAMILY,
     "epsilon": "1.0", "length": T, "window": w, "side_information": "none" | "any",
     "scale": "12.93…", "proofs": [PROOF, …]}

A family is one of::

    {"chains": [{"transition_matrices": [[["0.9", "0.1"], …], …],
                 "initial_distribution": [...] | "stationary" | "any",
                 "observations": [0, 1, …]}, …]}
    {"binary_interval": [low, high]}
    {"interval": {"low": [[…], …], "high": [[…], …], "backward": {…}}}
    {"total_variation": {"transition_matrix": [[…], …], "radius": [r, …], "backward": {…}}}
    {"mixing": {"steps": m, "overlap": "0.4"}}

A chain has a matrix per phase of its period, observations if it is hidden; there is a proof for
every chain, or the one family. All bound the loss at the scale itself. A proof is one of

``{}``
     All records of a segment together, T / scale; for a mixing family the bound by its overlap.
``{"witnesses": [TABLE, …], "forward": SIDE, "backward": SIDE, "observations": i}``
    A program (:mod:`pufferflow.verify.interpret`). A side is ``{"prefix": [STEP, …], "start": [[A,
    …], …], "cycle": [STEP, …]}``: steps for the nodes with 1, 2, … nodes on that side; for all
    others a table of bounds from which a period starts, and a step per phase. A step
    ``{"witnesses": i, "power": m}`` names the i-th table of witnesses, and how many steps away a
    node is bounded under any distribution; either may be missing. A table has a witness in row x
    and column y for these two values, or null: a tree, as the parent of every value (from 1), 0 for
    the root and negative if the arc leads from the parent; of sets of rows ``{"flow": [[…], …],
    "surplus": […], "reserve": […]}``, flows and shares of every part, tables from value to value.
    ``observations`` names trees for pairs of them. If records around hidden states may be known,
    these must determine ``power`` observations.
``{"quilts": [[first, last, left, right], …]}``
    Ranges of nodes that cover 1 … T, each with the Markov quilt at distances left and right, null
    for no quilt node.
``{"count": {"weights": [0, 1], "lengths": [T, …], "W": W, "slack": "0"}}``
    A single count, for wasserstein alone (:mod:`pufferflow.verify.counts`).

The certificate of a release with Gaussian noise has one more key, with its further costs: with
c = 1/scale it is (ε, δ)-private (docs/approximate.md, Theorems A and C)::

    "approximate": {"delta": "1e-6", "event_delta": "0", "rho": "1/…"}

Before a certificate is written the interpreter runs its program, and the scale is raised until the
bound is at most ε.
"""
