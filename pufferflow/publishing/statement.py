"""What a release promises: three short lists for people who decide, then the formal text, as text and as Markdown.

The lists say nothing that the formal text does not say; both come from public facts alone.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pufferflow.records.format import RecordFormat
from pufferflow.records.rows import MISSING_TEXTS

if TYPE_CHECKING:
    from pufferflow.publishing.released import PrivateRelease

WIDTH = 100
"""Letters of a line."""

OUTSIDE = (
    "how long the program ran and what memory it took",
    "that a release was refused, and at which line",
    "the file itself, its name, its size and other copies of the data",
    "what else is published about the same records and is not added up with this release",
)
"""What no noise covers."""


@dataclass(frozen=True)
class Statement:
    """What a release protects, what not, and what has to be believed for it.

    Attributes
    ----------
    warning : str
        What goes before everything; empty for a private release without a flaw.
    protects, not_protected, beliefs : tuple of str
        Points of the three lists.
    formal : tuple of str
        The sentences of the formal text.
    """

    warning: str
    protects: tuple[str, ...]
    not_protected: tuple[str, ...]
    beliefs: tuple[str, ...]
    formal: tuple[str, ...]

    @property
    def lists(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Title and points of each list."""
        return (
            ("Protects", self.protects),
            ("Does not protect", self.not_protected),
            ("What you must believe for it", self.beliefs),
        )

    @property
    def formal_text(self) -> str:
        """The formal text as one paragraph."""
        return " ".join(self.formal)

    def text(self) -> str:
        """Return everything as wrapped text."""
        return "\n".join(self._lines("", ""))

    def markdown(self) -> str:
        """Return everything as wrapped Markdown; no word of it is taken for markup."""
        return "\n".join(self._lines("## ", "\\"))

    def to_dict(self) -> dict[str, Any]:
        """Return the lists and the formal text as plain JSON types."""
        return {
            "statement": self.formal_text,
            "protects": list(self.protects),
            "does_not_protect": list(self.not_protected),
            "what_you_must_believe": list(self.beliefs),
        }

    def _lines(self, heading: str, escape: str) -> Iterator[str]:
        def plain(text: str) -> str:
            return "".join(escape + c if escape and c in "\\`*_[]<>#|$" else c for c in text)

        if self.warning:
            yield from _wrapped(plain(self.warning))
            yield ""
        for title, points in self.lists:
            yield f"{heading}{title}"
            yield ""
            for point in points:
                yield from _wrapped(plain(point), "- ", "  ")
            yield ""
        yield f"{heading}Formal statement"
        yield ""
        for sentence in self.formal:
            yield from _wrapped(plain(sentence))
            yield ""


@dataclass(frozen=True)
class Hidden:
    """What is hidden by a release, from what is known of its noise.

    Attributes
    ----------
    window : int
        So many steps in a row.
    others_known : bool
        Whether also from those who know other steps of the participant.
    outright : {"participant", "segment", ""}
        What is hidden as a whole, by group privacy, whatever Θ is: all records of one participant, all of one segment,
        or neither. Noise of scale σ hides d records outright where d ≤ εσ, and a d that is the length of an independent
        record leaves none over which they could be told from.
    """

    window: int
    others_known: bool
    outright: str


def hidden_by(made: PrivateRelease) -> Hidden:
    """Return what a release hides."""
    chosen = made.calibration.chosen
    covered = math.floor(Fraction(made.scale) * Fraction(made.epsilon))
    outright = "participant" if covered >= made.longest_record else "segment" if covered >= made.longest_segment else ""
    whole = {"participant": made.longest_record, "segment": made.longest_segment}.get(outright, 0)
    return Hidden(max(chosen.window, whole), bool(outright) or chosen.knows != "nothing", outright)


def statement_of(made: PrivateRelease) -> Statement:
    """Return what a release promises."""
    form = made.model.records
    hidden = hidden_by(made)
    secrets = _secrets(hidden, made, None if form is None else form.step_seconds)
    factor = factor_text(made.epsilon)
    warning = ""
    if not made.private:
        warning = (
            f"NOT PRIVATE: this is a simulation with seed {made.seed}, from which anybody can repeat the noise; it is "
            "for planning. Of a release with the same options one could say what follows."
        )
    account = "Releases of the same records add up." if made.account is None else made.account.statement
    split = [] if form is None or form.split_after_seconds is None else [_pause(form)]
    unused = []
    if made.unused_columns:
        unused = [
            f"{made.unused_columns} column(s) of the table were not used: where one of them tells series apart, "
            "the guarantee holds only if it is named as that of the participants."
        ]
    theta = made.model.family.text(made.chain_is_public)
    whom = "may know any of the others" if hidden.others_known else "knows none of them"
    return Statement(
        warning,
        protects=(
            f"{secrets[0].upper()}{secrets[1:]} of any one participant: who sees {made.subject} changes the odds "
            f"between any two possibilities by a factor of at most {factor}.",
            (
                "Whatever the records have to do with each other, and also from those who know any others."
                if hidden.outright
                else "Also from those who know any other steps of the participant."
                if hidden.others_known
                else "From those who know no other step of the participant."
            ),
        ),
        not_protected=(
            f"{_upper(_beyond(hidden))}.",
            *(
                ()
                if hidden.others_known
                else ("Anything from those who know other steps of a participant: they may learn more.",)
            ),
            *made.public_points,
            "What all participants have in common, which is what the release is for.",
            *(f"{_upper(point)}." for point in OUTSIDE),
        ),
        beliefs=(
            *(() if hidden.outright else (f"The records follow {theta}.",)),
            "The records of one participant tell nothing of those of another."
            if hidden.outright == "participant"
            else "The segments of the records tell nothing of each other, nor do participants.",
            *split,
            *unused,
            "All releases of these records are added up: "
            + (
                "no account is kept of them here."
                if made.account is None or made.account.ledger is None
                else f"in the ledger {made.account.ledger} and nowhere else."
            ),
            *(f"{_upper(warning)}." for warning in made.warnings),
        ),
        formal=tuple(_formal(made, hidden, whom, theta, account, split, unused, warning)),
    )


def _formal(
    made: PrivateRelease,
    hidden: Hidden,
    whom: str,
    theta: str,
    account: str,
    split: list[str],
    unused: list[str],
    warning: str,
) -> Iterator[str]:
    form = made.model.records
    secrets = _secrets(hidden, made, None if form is None else form.step_seconds)
    if warning:
        yield warning
    believes = (
        "whatever somebody believes of how the records depend on each other within a "
        f"{hidden.outright}, and whatever else they know, the odds"
        if hidden.outright
        else f"whoever believes that the records follow {theta}, and {whom}, changes the odds"
    )
    yield (
        f"Guarantee: {believes} between any two {secrets} of any one participant "
        f"{'change ' if hidden.outright else ''}by a factor of at most e^epsilon = {factor_text(made.epsilon)} on "
        f"seeing {made.subject} (Pufferfish privacy, epsilon = {made.epsilon:g} nats; Song, Wang and Chaudhuri, SIGMOD "
        f"2017{'; group privacy, section 5' if hidden.outright else ''})."
    )
    proof = "internal/certificate.json proves that this scale suffices"
    if made.calibration.certificate is None:
        proof = "there is no certificate of it"
    yield f"{made.noise_text}; {proof}."
    yield _about_the_chains(made)
    yield (
        f"Public, and not protected: the states, epsilon, the number of records "
        f"({made.records}), when there is a record, and the lengths of the segments ({made.segments} of "
        f"{made.participants} participant(s)), which are taken to be independent of each other"
        f"{', but for those of one participant' if hidden.outright == 'participant' else ''}."
    )
    if form is not None:
        missing = ", ".join(text for text in MISSING_TEXTS if text and not form.states.claims(text))
        yield f"A value that is empty or reads {missing} counts as missing, and when one is missing is public."
    yield from split
    if not made.theta_is_chosen and made.fitted_privately is None:
        yield _records_of_chain(form)
    other = "" if hidden.others_known else "that who knows other steps of a participant learns no more; "
    outside = (
        "and anything where participants are not independent"
        if hidden.outright
        else "and to somebody who believes in a chain outside the set, only epsilon plus twice its distance (Theorem "
        "2.4)"
    )
    yield f"Not guaranteed: {_beyond(hidden)}; {other}{outside}."
    yield account
    yield f"Outside any such guarantee: {'; '.join(OUTSIDE)}."
    yield from unused
    for said in made.warnings:
        yield f"Warning: {said}."
    if made.figure_fault:
        yield f"The figure is missing, for it could not be drawn ({made.figure_fault})."
    yield from made.afterwards


def _secrets(hidden: Hidden, made: PrivateRelease, step: int | None) -> str:
    """What is hidden, in words."""
    if hidden.outright == "participant":
        return f"courses of the whole record (up to {made.longest_record} steps)"
    if hidden.outright:
        return f"courses of any whole segment (up to {made.longest_segment} steps in a row)"
    if hidden.window == 1:
        return f"states at any one step ({step} s)" if step else "states at any one step"
    return f"courses of any {hidden.window} steps in a row" + (f" ({hidden.window * step} s)" if step else "")


def _beyond(hidden: Hidden) -> str:
    """What is not hidden."""
    if hidden.outright == "participant":
        return "that somebody took part, and when there is a record of them"
    if hidden.outright:
        return "anything about several segments of one participant together"
    if hidden.window == 1:
        return "anything about a participant's whole record, a day or a habit"
    return f"anything about more than {hidden.window} steps in a row, such as a participant's whole record or a habit"


def _about_the_chains(made: PrivateRelease) -> str:
    if made.theta_is_chosen:
        return (
            "The set of chains was chosen, not fitted, so it tells nothing of any record; it and the certificate "
            "are published too (chain.json, certificate.json)."
        )
    if (fit := made.fitted_privately) is not None:
        return (
            f"The set of chains was fitted to {fit.participants} participants with noise that hides each of them "
            f"(epsilon = {fit.epsilon:g}); it holds their chain with confidence {fit.confidence:g}, if they are "
            "independent draws of it, and where it does not, this guarantee is that of a chain outside the set. "
            "It and the certificate are published too (chain.json, certificate.json)."
        )
    if made.chain_is_public:
        return (
            "The set of chains and the certificate are published too (chain.json, certificate.json), as the "
            "records that the chains were fitted to are public."
        )
    return (
        "The set of chains is not published, nor is the certificate, which holds it: from a fitted chain the "
        "counts that it was fitted to can be found again. Both are in the folder internal, which stays with who "
        "made this release; of the chains nothing is told but the name of the mechanism and the noise scale."
    )


def _pause(form: RecordFormat) -> str:
    """What splits a record."""
    return (
        f"Of one participant, a pause of more than {form.split_after_seconds} s begins a segment of its own, "
        f"because, as the publisher says: {form.split_because!r}; the length of a pause is no evidence of that."
    )


def _records_of_chain(form: RecordFormat | None) -> str:
    if form is None or form.fitted is None:
        return "The model does not say which records the chain comes from."
    fitted = form.fitted
    return f"The chain was fitted to {fitted.records} records from {fitted.first} to {fitted.last}."


def factor_text(epsilon: float) -> str:
    """Return e^ε in words."""
    return f"{math.exp(epsilon):.4g}" if epsilon < 700 else "a number beyond all bounds"


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _wrapped(text: str, first: str = "", following: str = "") -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=following, break_long_words=False, break_on_hyphens=False
    )
