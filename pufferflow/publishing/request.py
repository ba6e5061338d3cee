"""What is asked for when a histogram is released, rehearsed or simulated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, get_args

from pufferflow._checks import check_choice, check_type
from pufferflow._files import PathLike
from pufferflow._protection import Knowledge, Level, Protect, check_level
from pufferflow.errors import ParameterError
from pufferflow.markov import Family, MarkovChain
from pufferflow.models import PublicModel
from pufferflow.publishing.account import LedgerLike
from pufferflow.publishing.fitting import Fit
from pufferflow.publishing.histogram import PostProcessing
from pufferflow.publishing.private_fit import PrivateFit
from pufferflow.publishing.statistics import Histogram, Statistic
from pufferflow.records.format import RecordFormat
from pufferflow.records.reading import Reading
from pufferflow.records.tables import Source

Model: TypeAlias = "PublicModel | Fit | PrivateFit | Family | MarkovChain | PathLike"


@dataclass(frozen=True, eq=False, repr=False)
class ReleaseRequest:
    """One release, as it was asked for; the fields are those of :func:`pufferflow.release_histogram`.

    Raises ParameterError: ``protect``, ``window``, ``knows``, ``post_processing`` or ``chain_is_public`` is out of
    range.
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
    quantiles: tuple[float, ...] = ()
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
