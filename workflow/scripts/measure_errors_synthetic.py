from reproduction.job import job

with job(snakemake) as (input, output, params):
    import numpy as np

    from reproduction import tidy

    scales, count = tidy.read_all(input.scales, "scales"), params.repetitions
    keys = ("dataset", "label", "alpha", "mechanism", "epsilon", "length", "status", "reason")
    errors = []
    for (alpha, mechanism), own in scales.groupby(["alpha", "mechanism"], sort=False):
        # Each repetition draws q, P(0|0) and P(1|1) uniformly from the class, and a chain of them.
        rng = tidy.named_generator(params.seed, f"synthetic/chains/{alpha:.12g}")
        q, stay_zero, stay_one = rng.uniform(alpha, 1 - alpha, (3, count))
        length = int(own["length"].iloc[0])
        uniforms = rng.random((count, length))
        state, exact = uniforms[:, 0] < q, np.zeros(count)
        for t in range(length):
            if t:
                state = uniforms[:, t] < np.where(state, stay_one, 1 - stay_zero)
            exact += state
        exact /= length
        name = f"synthetic/{mechanism}/{alpha:.12g}"
        noise = tidy.named_generator(params.seed, name).laplace(size=count)
        for row in own.to_dict("records"):
            unit = row["scale"] * row["lipschitz"]
            mean, standard_error = tidy.mean_and_error(np.abs((exact + unit * noise) - exact))
            error = {"expected_error": unit, "mean_error": mean, "standard_error": standard_error}
            errors.append({key: row[key] for key in keys} | error | {"repetitions": count})
    tidy.write(tidy.frame(errors, "errors"), output[0], "errors")
