"""Commands and options of earlier versions, and their replacements."""

WORDS = {
    **{name: f"is now related {name}" for name in ("check", "noisymax", "network", "general")},
    "simulate": "is now release --simulate SEED",
    "export": "is now example",
    "count": "is gone; pf.RunningCount counts a stream in Python",
    "synthesise": "is gone without a replacement",
    "--forgets": "is now --mixing, with a time: --mixing 1h 0.4",
    "--knows": "is now --side-information: none or any",
    "--window": "is now --protect, for example --protect 1h",
    "--by": "is gone; name the cells in the statistic: --statistic mean-by-hour",
    "--mechanism": "is gone: a release takes the least certified noise",
    "--most-work": "is gone: the work of a release is not bounded",
    "--chain-is-public": "is gone: the model file states what it was fitted to",
    "--grid": "is gone: means and sums are rounded to a thousandth of the width of --bounds",
    "--durations": "is now --duration-edges",
    "--seed": "is now --simulate",
    "--length": "is now --period, for example --period 7d",
    "--sample": "is gone: fit writes one file, the model (--output)",
    "--chain": "is an option of release and plan; fit writes its model to --output",
}
GONE = {
    "--split-after --split-because": "the noise suffices for any length, whatever the gaps",
    "--quantiles --post-process": "derive it from publish/values.csv, which costs nothing",
    "--accuracy --releases --records --error --figure": "plan shows the errors at all levels",
    "--bins --width --top --other --smoothing": "give --edges LOW:HIGH:WIDTH or --states A,B,...",
    "--diagnose --public": "fit states the assumptions of its chain",
}
WORDS |= {name: f"is gone: {why}" for names, why in GONE.items() for name in names.split()}
