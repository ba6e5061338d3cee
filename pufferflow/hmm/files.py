"""Files of hidden Markov models, with and without free parameters.

A model file is one JSON object (0.1 is one tenth; ``"1/3"`` is a third)::

    {"transition_matrix": [[…]], "observation_matrix": [[…]],
     "initial_distributions": {"ill": ["0", "1/2", "1/2"], "healthy": ["1/2", "1/2", "0"]},
     "states": […], "observations": […], "pairs": [["ill", "healthy"]], "length": 2}

The last line is optional. With the key ``parameters`` it is a :class:`pufferflow.hmm.PriorFamily`.
The key ``noisy_max`` replaces the matrices; all but its ``priors`` are optional::

    {"noisy_max": {"priors": {"ill": [["(1 - p)**2", "2*p*(1 - p)", "p**2"], [0, "1/2", "1/2"]],
                   "healthy": …}, "release": "index", "largest": 2, "ties": "first",
                   "mechanism": [[…]]},
     "parameters": {"p": [0, 1]}, "pairs": […]}
"""

import os

from pufferflow._util.json import only_keys, read_json
from pufferflow.hmm.model import HiddenMarkovModel
from pufferflow.hmm.noisy_max import NoisyMax
from pufferflow.hmm.priors import PriorFamily

_REQUIRED = ("transition_matrix", "observation_matrix", "initial_distributions")
_OPTIONAL = ("states", "observations", "pairs", "length", "parameters")
_NOISY_MAX = ("priors", "largest", "mechanism", "release", "ties")


def read_hidden_markov_model(path: str | os.PathLike[str]) -> HiddenMarkovModel | PriorFamily:
    """Return the model of a file; ``"-"`` is standard input.

    Raises ModelError: the file cannot be read, is not JSON or does not describe a hidden Markov
    model.
    """
    keys = " and ".join(f'"{key}": …' for key in _REQUIRED)
    return read_json(path, _parse, keys, number=str)


def _parse(document: object) -> HiddenMarkovModel | PriorFamily:
    free = isinstance(document, dict) and "parameters" in document
    if isinstance(document, dict) and "noisy_max" in document:
        options = dict(only_keys(document, ("noisy_max", "parameters", "pairs"), "the model"))
        described = dict(only_keys(options.pop("noisy_max"), _NOISY_MAX, "noisy_max"))
        priors = described.pop("priors", None)
        noisy_max = NoisyMax(**described)
        return (noisy_max.family if free else noisy_max.model)(priors, **options)
    parts = only_keys(document, (*_REQUIRED, *_OPTIONAL), "the model", _REQUIRED)
    return (PriorFamily if free else HiddenMarkovModel)(**parts)
