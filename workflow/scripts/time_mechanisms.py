"""Seconds from a transition matrix to a noise scale, compiled beforehand, without cached tables.

Every repeat builds a new chain, so that nothing computed for an earlier one is used again.
"""

from reproduction.job import job

with job(snakemake) as (input, output, params):
    import platform
    from functools import partial
    from timeit import repeat

    import numpy as np

    from pufferflow._util import jit
    from pufferflow.mechanisms import compute_scale
    from pufferflow.models.chain import MarkovChain
    from pufferflow.models.families import BinaryInterval
    from reproduction import tidy
    from reproduction.chains import load_chains
    from reproduction.data.sample import load_sample, pooled
    from reproduction.synthetic import SYNTHETIC, alpha_grid

    jit.PATIENCE = -1  # compiles at once
    options = tidy.without_proofs(params.options)  # the paper's have none
    # A column of the paper's table: source of the data, constructors of the families whose seconds
    # are averaged, and lengths of the chains.
    alphas = alpha_grid(**params.alphas)
    classes = [partial(BinaryInterval, alpha, 1 - alpha) for alpha in alphas]
    place = SYNTHETIC | {"group": f"mean over {len(alphas)} alpha"}
    columns = [(place, classes, (params.length,))]
    for sample_path, chains_path in zip(input.samples, input.chains, strict=True):
        sample = load_sample(sample_path)
        for group, chain in load_chains(chains_path).items():
            start = chain.initial_distribution if chain.start == "given" else chain.start
            place = {"dataset": sample.dataset, "label": sample.label, "group": group}
            build = partial(MarkovChain, chain.transition_matrix, start)
            columns.append((place, [build], pooled(sample.group(group)).segment_lengths))

    def measured(mechanism, families, lengths):
        own = options.get(mechanism, {})

        def scale(family):
            return compute_scale(mechanism, family(), lengths, params.epsilon, **own)

        applicable = [f for f in families if scale(f).status == "ok"]  # compiles, too
        timed = applicable or families
        # a mean over many families needs fewer repeats
        repeats = min(params.repeats, max(3, params.repeats // len(families)))
        seconds = np.array(repeat(lambda: list(map(scale, timed)), number=1, repeat=repeats))
        return {
            "mechanism": mechanism,
            "epsilon": params.epsilon,
            "status": "ok" if applicable else "not applicable",
            "families": len(families),
            "applicable": len(applicable),
            "median_seconds": np.median(seconds) / len(timed),
            "least_seconds": seconds.min() / len(timed),
            "most_seconds": seconds.max() / len(timed),
            "repeats": repeats,
            "machine": f"{platform.machine()}, Python {platform.python_version()}",
        }

    rows = [
        place | measured(mechanism, families, lengths)
        for place, families, lengths in columns
        for mechanism in params.mechanisms
    ]
    tidy.write(tidy.frame(rows, "timings"), output[0], "timings")
