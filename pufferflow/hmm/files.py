"""Files of hidden Markov models, with and without free parameters.

A model file is one JSON object (0.1 is one tenth; ``"1/3"`` is a third)::

    {"transition_matrix": [[…]], "observation_matrix": [[…]],
     "initial_distributions": {"ill": ["0", "1/2", "1/2"], "healthy": ["1/2", "1/2", "0"]},
     "states": […], "observations": […], "pairs": [["ill", "healthy"]], "length": 2}

The last line is optional. With the key ``parameters`` it is a :class:`pufferflow.hmm.PriorFamily`.
The key ``noisy_max`` replaces the matrices, see :class:`pufferflow.hmm.NoisyMax`::

    {"noisy_max": {"priors": {"ill": [["(1 - p)**2", "2*p*(1 - p)", "p**2"], [0, "1/2", "1/2"]],
                   "healthy": …}, "release": "index", "ties": "first", "mechanism": [[…]]},
     "parameters": {"p": [0, 1]}, "pairs": […]}
"""

from __future__ import annotations

import os

from pufferflow._json import kind, only_keys, read_json
from pufferflow.errors import ModelError
from pufferflow.hmm.model import HiddenMarkovModel
from pufferflow.hmm.noisy_max import NoisyMax
from pufferflow.hmm.priors import PriorFamily

_REQUIRED = ("transition_matrix", "observation_matrix", "initial_distributions")
_OPTIONAL = ("states", "observations", "pairs", "length", "parameters")


def read_hidden_markov_model(path: str | os.PathLike[str]) -> HiddenMarkovModel | PriorFamily:
    """Return the model of a file; ``"-"`` is standard input.

    Raises
    ------
    ModelError
        The file cannot be read, is not JSON or does not describe a hidden Markov model.
    """
    keys = " and ".join(f'"{key}": …' for key in _REQUIRED)
    return read_json(path, parse_hidden_markov_model, keys, number=str)


def parse_hidden_markov_model(document: object) -> HiddenMarkovModel | PriorFamily:
    """Return the model that a parsed model file describes.

    Raises
    ------
    ModelError, ParameterError
        A key is unknown, missing or of the wrong type, or a distribution is impossible.
    """
    if not isinstance(document, dict):
        raise ModelError(f"a hidden Markov model is an object, not {kind(document)}")
    if "noisy_max" not in document:
        only_keys(document, (*_REQUIRED, *_OPTIONAL), "the model")
        for key in _REQUIRED:
            if key not in document:
                raise ModelError(f"the model has no {key}; it needs {', '.join(_REQUIRED)}")
        return (PriorFamily if "parameters" in document else HiddenMarkovModel)(**document)
    options = dict(document)
    described = options.pop("noisy_max")
    only_keys(options, ("parameters", "pairs"), "the model")
    if not isinstance(described, dict) or not isinstance(described.get("priors"), dict):
        raise ModelError('noisy_max must be an object with "priors": distributions of the counts')
    only_keys(described, ("priors", "mechanism", "release", "ties"), "noisy_max")
    mechanism = dict(described)
    priors = mechanism.pop("priors")
    try:
        largest = len(next(iter(priors.values()))[0]) - 1
    except (StopIteration, LookupError, TypeError):
        raise ModelError("noisy_max has no priors; give the distributions of the counts") from None
    noisy_max = NoisyMax(largest=largest, **mechanism)
    make = noisy_max.family if "parameters" in options else noisy_max.model
    return make(priors, **options)
