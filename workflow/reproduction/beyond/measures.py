"""Rows of the studies: least noise, several releases, wider guarantees, other data, a cohort."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd

from pufferflow.accounting.event import Accountant
from pufferflow.audit import CountQuery, lower_bound, privacy_losses
from pufferflow.errors import ParameterError
from pufferflow.mechanisms import certify, compute_scale, leakage_loss
from pufferflow.models.chain import MarkovChain
from pufferflow.models.estimation import confidence_family, fit_chain
from pufferflow.models.families import Family, as_family
from pufferflow.models.mixing import MixingFamily
from pufferflow.records.times import HOUR
from pufferflow.verify import verify_certificate
from reproduction.chains import fit_chains, histogram_scales, load_chains
from reproduction.data.discretise import Runs, discretise
from reproduction.data.people import fitbit
from reproduction.data.sample import Sample, load_sample, pooled
from reproduction.tidy import frame, scale_row, without_proofs

Row = dict[str, Any]
Options = Mapping[str, Mapping[str, Any]]  # of mechanisms, by name
Case = tuple[MarkovChain, Row]  # a chain and columns of its rows; length: longest segment
YEARS = ("2007-05-01T00:00", "2008-04-30T00:00")  # each begins one of the household's two years
BORROWED = 30  # steps per state that each hour's chain takes from the whole day


def synthetic_cases(stay: Sequence[Sequence[float]], length: int) -> Iterator[Case]:
    """Yield stationary binary chains, given P(0|0) and P(1|1) of each."""
    given = {"dataset": "synthetic", "label": "synthetic", "observations": length, "length": length}
    for zero, one in stay:
        chain = MarkovChain([[zero, 1 - zero], [1 - one, one]])
        yield chain, given | {"group": f"P(0|0) = {zero:g}, P(1|1) = {one:g}"}


def fitted_cases(sample_file: str, chains_file: str) -> Iterator[Case]:
    """Yield the fitted chain of each group of a sample."""
    sample = load_sample(sample_file)
    given: Row = {"dataset": sample.dataset, "label": sample.label, "data": sample.description}
    for group, chain in load_chains(chains_file).items():
        own = pooled(sample.group(group))
        size = {"observations": own.observations, "length": max(own.segment_lengths)}
        yield chain, given | {"group": group} | size


def least_noise(
    cases: Iterator[Case],
    epsilons: Sequence[float],
    mechanisms: Sequence[str],
    options: Options,
    exact_loss: Mapping[str, Any],
) -> Iterator[Row]:
    """Yield scales and their lower bound, one row per chain, ε and mechanism.

    ``expected_error`` is the L1 error of the relative-frequency histogram, if the scale is for it.
    ``actual_loss`` is the exact loss (rounded up) of the count of the states ``counted``, the
    largest of all counts, at ``epsilons`` and up to ``longest`` records of ``exact_loss``.
    """
    plain = without_proofs(options)
    for (chain, given), epsilon in product(cases, epsilons):
        length, bins = given["length"], chain.states
        least = lower_bound(chain, length, epsilon, alternating=False)
        count: Row = {"states": sorted(least.states)}
        results = {}
        for name in mechanisms:
            own = count if name == "wasserstein" else plain.get(name, {})
            results[name] = compute_scale(name, chain, length, epsilon, **own)
        losses: dict[float, float] = {}
        if length <= exact_loss["longest"] and epsilon in exact_loss["epsilons"]:
            scales = sorted({r.scale for r in results.values() if r.scale is not None})
            found = privacy_losses(chain, length, scales, CountQuery(least.states))
            losses = {scale: one.loss for scale, one in zip(scales, found, strict=True)}
        paper = results["mqm-exact"].scale if "mqm-exact" in results else None
        for name, result in results.items():
            row = given | scale_row(result) | {"bins": bins, "lower_bound": least.scale}
            row["counted"] = " ".join(map(str, count["states"]))
            if (scale := result.scale) is not None:
                if name != "wasserstein" or bins <= 2:
                    row["expected_error"] = bins * scale * 2 / given["observations"]
                row["relative_noise"] = scale / paper if paper else None
                row["gap"] = scale / least.scale if least.scale > 0 else None
                row["actual_loss"] = losses.get(scale)
            yield row


def composition(cases: Iterator[Case], epsilon: float, releases: int) -> Iterator[Row]:
    """Yield the total ε of 1, 2, … releases at MQMExact's scale, one row per number and bound."""
    for chain, given in cases:
        scale = compute_scale("mqm-exact", chain, given["length"], epsilon).scale
        assert scale is not None  # mqm-exact applies to every chain
        accountant = Accountant(chain, given["length"])
        for count in range(1, releases + 1):
            accountant.add(scale)
            row = given | {"epsilon": epsilon, "scale": scale, "releases": count}
            for bound, total in accountant.cost().items():
                yield row | {"bound": bound, "total_epsilon": total}


def models(
    runs: Runs, step_seconds: int, coverage: float, mixing: Mapping[str, Any]
) -> dict[str, Family]:
    """Return the families that fit records with these runs, the narrowest first."""
    counts = runs.hourly.sum(axis=0)
    fitted, _ = fit_chain(counts)
    second, _ = fit_chain(runs.triples, order=2)
    found: dict[str, Family] = {"fitted": as_family(fitted), "order 2": as_family(second)}
    if HOUR % step_seconds == 0:  # otherwise steps do not fill hours
        repeat = HOUR // step_seconds
        found["hourly"], _ = fit_chain(runs.hourly, repeat=repeat, smoothing=BORROWED)
    found["intervals"] = confidence_family(counts, coverage, backward=True)
    found["mixing"] = MixingFamily(**mixing)
    return found


def wider_guarantees(
    sample: Sample,
    runs: Mapping[str, Runs],
    epsilons: Sequence[float],
    windows: Sequence[int],
    coverage: float,
    mixing: Mapping[str, Any],
    certified_epsilons: Sequence[float],
) -> Iterator[Row]:
    """Yield leakage scales, one row per group, ε, model, window (in records) and side information.

    ``relative_noise`` is scale ÷ ``paper_scale``, that of MQMExact for one record of the fitted
    chain; ``paper_loss`` bounds the loss at ``paper_scale`` under the model; ``certified`` states
    whether a certificate was verified. ``runs`` may have other states than ``sample``.
    """
    given: Row = {"dataset": sample.dataset, "label": sample.label, "data": sample.description}
    for group, of in runs.items():
        length = max(pooled(sample.group(group)).segment_lengths)
        families = models(of, sample.step_seconds, coverage, mixing)
        given |= {"group": group, "states": len(of.triples), "step_seconds": sample.step_seconds}
        for epsilon in epsilons:
            paper = compute_scale("mqm-exact", families["fitted"], length, epsilon).scale
            assert paper is not None  # mqm-exact applies to every chain
            cells = product(families.items(), windows, ("none", "any"))
            for (name, family), window, side_information in cells:
                protection: Row = {"window": window, "side_information": side_information}
                result = compute_scale("leakage", family, length, epsilon, **protection)
                row = given | {"model": name, "paper_scale": paper} | protection | scale_row(result)
                row["relative_noise"] = None if result.scale is None else result.scale / paper
                if epsilon in certified_epsilons:
                    row["certified"] = True
                    try:
                        proof = certify(family, length, epsilon, mechanism="leakage", **protection)
                        verify_certificate(proof)
                    except ParameterError:  # of the scale, not of a certificate
                        row["certified"] = False
                row["paper_loss"] = leakage_loss(family, length, paper, **protection)
                yield row


def other_data(
    nhanes: str, wearers: str, household: str, settings: Mapping[str, Any], options: Options
) -> Iterator[Row]:
    """Yield expected L1 errors of histograms, one row per sample, group, task, mechanism and ε.

    The first three arguments are raw files. Chains are maximum-likelihood fits, stationary.
    """
    activity = [{"kind": "activity", "step_minutes": step} for step in (1, 2, 5)]
    power = [{"kind": "power", "step_minutes": step} for step in settings["step_minutes"]]
    power += [{"kind": "power", "window_start": s, "window_minutes": 365 * 1440} for s in YEARS]
    samples = [discretise(nhanes, own, "activity", "bundled") for own in activity]
    samples.append(fitbit(wearers))
    samples += [discretise(household, own, "electricity", "bundled") for own in power]
    for sample in samples:
        yield from _errors(sample, settings, without_proofs(options))


def _errors(sample: Sample, settings: Mapping[str, Any], options: Options) -> Iterator[Row]:
    """Yield the rows of one sample: of the pooled histogram, and of the mean over participants."""
    chains, epsilons = fit_chains(sample, 0.0, "stationary"), settings["epsilons"]
    scales: list[Row] = []
    for name in settings["mechanisms"]:
        scales += histogram_scales(sample, chains, name, epsilons, options.get(name, {}))
    keys = ["group", "task", "mechanism", "epsilon"]
    given: Row = {"dataset": sample.dataset, "label": sample.label, "data": sample.description}
    given["step_seconds"] = sample.step_seconds
    table = frame(scales, "scales").sort_values(["group", "task"], kind="stable")
    for key, own in table.groupby(keys, sort=False):
        row, members = given | dict(zip(keys, key, strict=True)), sample.group(str(key[0]))
        row |= {"participants": len(members), "records": pooled(members).observations}
        failed = own[own["status"] != "ok"]
        if failed.empty:
            mean = (own["scale"] * own["lipschitz"]).to_numpy().mean()
            yield row | {"status": "ok", "expected_error": len(sample.states) * float(mean)}
        else:
            yield row | {"status": "not applicable", "reason": failed["reason"].iloc[0]}


def simulated_chain(number: int, settings: Mapping[str, Any], seed: int) -> tuple[MarkovChain, int]:
    """Draw the chain of participant ``number``, s·I + (1 − s)·D, and the length of their record.

    The rows of D are uniform on the simplex, s is uniform from 0 to ``persistence``, and the length
    is log-uniform from ``shortest`` to ``longest``.
    """
    generator, states = _generator(seed, "cohort/chains", str(number)), settings["states"]
    stay = settings["persistence"] * generator.random()
    matrix = stay * np.eye(states) + (1 - stay) * generator.dirichlet(np.ones(states), size=states)
    shortest, longest = settings["shortest"], settings["longest"]
    length = np.exp(generator.uniform(np.log(shortest), np.log(longest + 1)))
    return MarkovChain(matrix), int(np.clip(length, shortest, longest))


def cohort(
    piece: str, settings: Mapping[str, Any], options: Mapping[str, Any], seed: int
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a piece such as "2-of-4": one per participant, mechanism and ε.

    ``released_error`` is the L1 error of one release of the participant's relative frequencies,
    ``expected_error`` its mean, ``least_error`` that at the lower bound.
    """
    part, pieces = map(int, piece.split("-of-"))
    people, bins = settings["participants"], settings["states"]
    for number in range(people * (part - 1) // pieces + 1, people * part // pieces + 1):
        chain, length = simulated_chain(number, settings, seed)
        given: dict[str, Any] = {"dataset": "synthetic", "label": "synthetic", "bins": bins}
        given |= {"participant": str(number), "observations": length, "lipschitz": 2 / length}
        bounds = {}
        for epsilon in settings["epsilons"] if settings["lower_bound"] else []:
            least = lower_bound(chain, length, epsilon).scale
            bounds[epsilon] = {"lower_bound": least, "least_error": bins * least * (2 / length)}
        for mechanism in settings["mechanisms"]:
            # the same unit noise for each ε
            generator = _generator(seed, f"cohort/{mechanism}", f"synthetic//{number}")
            noise = np.abs(generator.laplace(size=bins)).sum()
            for epsilon in settings["epsilons"]:
                own = options.get(mechanism, {})
                row = given | scale_row(compute_scale(mechanism, chain, length, epsilon, **own))
                if row["scale"] is not None:
                    row["expected_error"] = bins * row["scale"] * row["lipschitz"]
                    row["released_error"] = noise * row["scale"] * row["lipschitz"]
                yield row | bounds.get(epsilon, {})


def cohort_summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return mean, standard deviation and quantiles over the participants, by ε and mechanism."""
    rows = rows.assign(gap=rows["scale"] / rows["lower_bound"])
    keys = ["epsilon", "mechanism", "quantity"]
    quantities = ["expected_error", "released_error", "least_error", "gap"]
    values = rows.melt(keys[:2], quantities, "quantity").dropna()
    found = values.groupby(keys, sort=False)["value"].describe(percentiles=[0.05, 0.5, 0.95])
    return found.drop(columns="min").reset_index()


def _generator(seed: int, purpose: str, participant: str) -> np.random.Generator:
    """Return the participant's own generator, so that the number of pieces has no effect."""
    return np.random.default_rng([seed, crc32(purpose.encode()), *participant.encode()])
