from reproduction.job import job

with job(snakemake) as (input, output, params):
    from pufferflow.mechanisms import compute_scale
    from pufferflow.records.sample import load_sample, pooled_segment_lengths
    from reproduction import tidy
    from reproduction.chains import load_chains

    sample, chains = load_sample(input.sample), load_chains(input.chains)
    rows = []
    for group in sample.groups:
        members = sample.group(group)
        histograms = [("individual", (person,)) for person in members]
        if len(members) > 1:
            histograms.insert(0, ("aggregate", members))
        for task, people in histograms:
            name, lengths = params.mechanism, pooled_segment_lengths(people)
            if name == "participant-dp":
                # The row "DP" of Table 1 hides a participant's whole record among those of a group:
                # group privacy, where all that one participant has counts as one chain.
                if task == "individual":
                    continue
                name, lengths = "group-dp", [person.observations for person in people]
            place = {
                "dataset": sample.dataset,
                "label": sample.label,
                "group": group,
                "task": task,
                "participant": people[0].name if task == "individual" else "",
                # of relative frequencies: one record changes two of them by 1/n
                "lipschitz": 2 / sum(person.observations for person in people),
            }
            for epsilon in params.epsilons:
                scale = compute_scale(name, chains[group], lengths, epsilon, **params.options)
                rows.append(place | tidy.scale_row(scale) | {"mechanism": params.mechanism})
    tidy.write(tidy.frame(rows, "scales"), output[0], "scales")
