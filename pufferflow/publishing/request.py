"""What is asked for when a histogram is released, rehearsed or simulated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, TypeAlias, get_args

from pufferflow._checks import check_choice, check_type
from pufferflow._files import PathLike
from pufferflow._protection import Knowledge, Level, LevelOptions, Protect, check_level
from pufferflow.errors import ParameterError
from pufferflow.markov import Family, MarkovChain
from pufferflow.models import PublicModel
from pufferflow.publishing.account import AccountOptions, LedgerLike
from pufferflow.publishing.fitting import Fit
from pufferflow.publishing.histogram import PostProcessing
from pufferflow.publishing.private_fit import PrivateFit
from pufferflow.publishing.quantiles import check_quantiles
from pufferflow.publishing.statistics import Histogram, Statistic, StatisticOptions
from pufferflow.records.format import RecordFormat
from pufferflow.records.reading import Reading
from pufferflow.records.tables import Source

Model: TypeAlias = "PublicModel | Fit | PrivateFit | Family | MarkovChain | PathLike"


class NoiseOptions(LevelOptions, total=False):
    """How records become noisy counts."""

    form: Annotated[
        RecordFormat | None, "RecordFormat, optional", "How records become states, where the model does not say."
    ]
    reading: Annotated[
        Reading | None,
        "Reading, optional",
        "Columns and clock (default: as the data were read that the chain was fitted to).",
    ]
    mechanism: Annotated[
        str | None, "str, optional", "Default: the least certified noise, which depends on Θ, T and ε alone."
    ]
    post_processing: Annotated[
        PostProcessing | None,
        '{"clip", "simplex"}, optional',
        "Of a single histogram: frequencies clipped to [0, 1], or projected to the simplex.",
    ]
    fitted_to_others: Annotated[
        bool,
        "bool",
        "Say that a chain which was fitted to records of the same time was fitted to those of other participants.",
    ]


class ReleaseOptions(AccountOptions, NoiseOptions, total=False):
    """How a release is made, paid for and written."""

    chain_is_public: Annotated[
        bool,
        "bool",
        "Say that the records that the chain was fitted to are public: then it and the certificate of the scale are "
        "among what may be published, which they otherwise are not.",
    ]
    figure: Annotated[bool, "bool", "Whether the folder gets a figure."]


class StatisticsOptions(ReleaseOptions, StatisticOptions, total=False):
    """The same of several statistics."""

    quantiles: Annotated[
        Sequence[float], "sequence of float", "To read off the noisy histograms of numbers, for example 0.5."
    ]


@dataclass(frozen=True, eq=False, repr=False)
class ReleaseRequest:
    """One release, as it was asked for: the options of :class:`StatisticsOptions` with their defaults.

    Raises ParameterError: ``protect``, ``window``, ``knows``, ``post_processing``, ``quantiles`` or
    ``chain_is_public`` is out of range.
    """

    source: Source | None
    """None only where the records are simulated."""
    model: Model
    epsilon: float
    form: RecordFormat | None = None
    reading: Reading | None = None
    mechanism: str | None = None
    protect: Protect | None = None
    window: int = 1
    knows: Knowledge = "nothing"
    post_processing: PostProcessing | None = None
    statistics: tuple[Statistic, ...] = (Histogram(),)
    quantiles: Sequence[float] = ()
    fitted_to_others: bool = False
    chain_is_public: bool = False
    ledger: LedgerLike | None = None
    limit: float | None = None
    output: PathLike | None = None
    figure: bool = True

    def __post_init__(self) -> None:
        if self.post_processing is not None:
            check_choice(self.post_processing, "post_processing", get_args(PostProcessing))
        check_type(self.chain_is_public, "chain_is_public", bool)
        if self.post_processing is not None and self.statistics != (Histogram(),):
            raise ParameterError("post_processing is for a single histogram; leave it out")
        names = [statistic.full_name for statistic in self.statistics]
        if not names or len(set(names)) < len(names):
            raise ParameterError("statistics must be different, and there must be some; name each once")
        histograms = [statistic for statistic in self.statistics if statistic.name == "histogram"]
        object.__setattr__(self, "quantiles", check_quantiles(self.quantiles))
        if self.quantiles and not histograms:
            raise ParameterError("quantiles are read off a histogram; ask for one too, or leave quantiles out")
        self.level(1)  # whatever the step is, which only the table or the model says

    def level(self, step_seconds: int | None) -> Level:
        """What is to be hidden, and from whom, where records are so far apart.

        Raises ParameterError: a time is to be hidden and no step is known.
        """
        return check_level(self.protect, self.window, self.knows, step_seconds)

    def __repr__(self) -> str:
        return "ReleaseRequest(…)"
