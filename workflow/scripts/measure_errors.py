from reproduction.job import job

with job(snakemake) as (input, output, params):
    import numpy as np

    from reproduction import tidy
    from reproduction.data.sample import load_sample, pooled

    sample = load_sample(input.sample)
    scales = tidy.read_all(input.scales, "scales")
    bins = len(sample.states)

    def stream(*names):
        return tidy.named_generator(params.seed, "/".join([sample.dataset, *names]))

    # Errors: over a group's individual histograms they are averaged, and one histogram without a
    # scale makes the row "not applicable".
    keys = ["dataset", "label", "group", "task", "mechanism", "epsilon"]
    errors = []
    for (group, task, mechanism), own in scales.groupby(["group", "task", "mechanism"], sort=False):
        # the same unit noise at every ε, so that adding an ε changes no other result
        noise = {}
        for person in own["participant"].unique():
            drawn = stream(group, task, mechanism, person).laplace(size=(params.repetitions, bins))
            noise[person] = np.abs(drawn).sum(axis=1)
        for _, rows in own.groupby("epsilon", sort=False):
            units = (rows["scale"] * rows["lipschitz"]).to_numpy()
            pairs = zip(units, rows["participant"], strict=True)
            draws = np.mean([unit * noise[person] for unit, person in pairs], axis=0)
            mean, standard_error = tidy.mean_and_error(draws)
            failed = rows[rows["status"] != "ok"]
            row = {
                "status": "ok" if failed.empty else "not applicable",
                "reason": "" if failed.empty else failed["reason"].iloc[0],
                "participants": len(sample.group(group)),
                "bins": bins,
                "expected_error": bins * float(units.mean()),
                "mean_error": mean,
                "standard_error": standard_error,
                "repetitions": params.repetitions,
            }
            errors.append(rows[keys].iloc[0].to_dict() | row)
    tidy.write(tidy.frame(errors, "errors"), output.errors, "errors")

    # Releases: noisy histograms of each group, of its only participant if there is just one.
    releases = []
    for group in sample.groups:
        members = sample.group(group)
        counts = pooled(members).state_counts
        exact = counts / counts.sum()
        task = "aggregate" if len(members) > 1 else "individual"
        wanted = (scales["group"] == group) & (scales["task"] == task) & (scales["status"] == "ok")
        for row in scales[wanted].to_dict("records"):
            noise = stream(group, "releases", row["mechanism"]).laplace(
                size=(params.releases, bins)
            )
            released = exact + row["scale"] * row["lipschitz"] * noise
            releases += [
                {key: row[key] for key in keys}
                | {"release": r + 1, "state": state}
                | {"exact_frequency": exact[s], "released_frequency": released[r, s]}
                for r in range(params.releases)
                for s, state in enumerate(sample.states)
            ]
    tidy.write(tidy.frame(releases, "releases"), output.releases, "releases")
