"""What is asked for when a histogram is released, rehearsed or simulated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, get_args

from pufferflow._checks import check_choice, check_type
from pufferflow._files import PathLike
from pufferflow._protection import Knowledge, Protection, check_protection
from pufferflow.markov import Family, MarkovChain
from pufferflow.models import PublicModel
from pufferflow.publishing.account import LedgerLike
from pufferflow.publishing.fitting import Fit
from pufferflow.publishing.histogram import PostProcessing
from pufferflow.publishing.private_fit import PrivateFit
from pufferflow.records.format import RecordFormat
from pufferflow.records.reading import Reading
from pufferflow.records.tables import Source

Model: TypeAlias = "PublicModel | Fit | PrivateFit | Family | MarkovChain | PathLike"


@dataclass(frozen=True, eq=False, repr=False)
class ReleaseRequest:
    """One release, as it was asked for; the fields are those of :func:`pufferflow.release_histogram`.

    Raises ParameterError: ``window``, ``knows``, ``post_processing`` or ``chain_is_public`` is out of range.
    """

    source: Source | None
    """None only where the records are simulated."""
    model: Model
    epsilon: float
    form: RecordFormat | None = None
    reading: Reading | None = None
    mechanism: str | None = None
    window: int = 1
    knows: Knowledge = "nothing"
    post_processing: PostProcessing | None = None
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
        check_protection(self.window, self.knows)

    @property
    def protection(self) -> Protection:
        """What is to be hidden, and from whom."""
        return check_protection(self.window, self.knows)

    def __repr__(self) -> str:
        return "ReleaseRequest(…)"
