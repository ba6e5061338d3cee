"""Files of hidden Markov models, with and without free parameters.

A model file is one object (numbers are read as written: 0.1 is one tenth; ``"1/3"`` is a third)::

    {"transition_matrix": [[…]], "observation_matrix": [[…]],
     "initial_distributions": {"ill": ["0", "1/2", "1/2"], "healthy": ["1/2", "1/2", "0"]},
     "states": […], "observations": […], "pairs": [["ill", "healthy"]], "length": 2}

Names, pairs (default: all) and the length of the observation sequences may be left out. With the key
``parameters`` it is a :class:`pufferflow.hmm.PriorFamily`.

The key ``noisy_max`` stands for the matrices of Noisy Max, which has thousands of entries from a few::

    {"noisy_max": {"priors": {"ill": [["(1 - p)**2", "2*p*(1 - p)", "p**2"], [0, "1/2", "1/2"]], "healthy": …},
                   "release": "index", "ties": "first", "mechanism": [[…]]},
     "parameters": {"p": [0, 1]}, "pairs": […]}

All but the priors may be left out, see :func:`pufferflow.hmm.noisy_max`.
"""

from __future__ import annotations

import os
from typing import Any

from pufferflow._json import kind, only_keys, read_json
from pufferflow.errors import ModelError
from pufferflow.related.hmm.builders import noisy_max, noisy_max_family
from pufferflow.related.hmm.model import HiddenMarkovModel
from pufferflow.related.hmm.priors import PriorFamily

_REQUIRED = ("transition_matrix", "observation_matrix", "initial_distributions")
_OPTIONAL = ("states", "observations", "pairs", "length")
_NOISY_MAX = ("mechanism", "release", "ties")


def read_hidden_markov_model(path: str | os.PathLike[str]) -> HiddenMarkovModel | PriorFamily:
    """Read a model file; ``"-"`` is standard input.

    Raises
    ------
    ModelError
        The file cannot be read, is not JSON or does not describe a hidden Markov model.
    """
    return read_json(path, parse_hidden_markov_model, " and ".join(f'"{key}": …' for key in _REQUIRED), number=str)


def parse_hidden_markov_model(document: object) -> HiddenMarkovModel | PriorFamily:
    """Return the model that a parsed model file describes, with free parameters a :class:`PriorFamily`.

    Raises
    ------
    ModelError
        A key is unknown, missing or of the wrong type, or a law is impossible.
    """
    if not isinstance(document, dict):
        raise ModelError(f"a hidden Markov model is an object, not {kind(document)}")
    if "noisy_max" in document:
        return _noisy_max(document)
    only_keys(document, (*_REQUIRED, *_OPTIONAL, "parameters"), "the model")
    for key in _REQUIRED:
        if key not in document:
            raise ModelError(f"the model has no {key}; it needs {', '.join(_REQUIRED)}")
    transitions, emissions, laws = (document[key] for key in _REQUIRED)
    named = {key: document[key] for key in _OPTIONAL if key in document}
    if "parameters" in document:
        return PriorFamily(transitions, emissions, laws, document["parameters"], **named)
    return HiddenMarkovModel(transitions, emissions, laws, **named)


def _noisy_max(document: dict[str, Any]) -> HiddenMarkovModel | PriorFamily:
    only_keys(document, ("noisy_max", "parameters", "pairs"), "the model")
    described = document["noisy_max"]
    if not isinstance(described, dict) or "priors" not in described:
        raise ModelError('noisy_max must be an object with "priors": the laws of the counts under each secret')
    only_keys(described, ("priors", *_NOISY_MAX), "noisy_max")
    priors, options = described["priors"], {key: described[key] for key in _NOISY_MAX if key in described}
    pairs = document.get("pairs")
    if "parameters" in document:
        return noisy_max_family(priors, document["parameters"], **options, pairs=pairs)
    return noisy_max(priors, **options, pairs=pairs)
