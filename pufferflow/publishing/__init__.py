"""From a table of somebody's records to a private histogram, and what to know before.

    fit = pf.fit_records(last_year, states=pf.States(width=200))  # a path, or a Series with a DatetimeIndex
    print(fit.summary())
    released = pf.release_histogram(this_year, fit.model, epsilon=1.0, ledger="meter.ledger", output="release")
    released.to_frame()
    print(released.statement)

:mod:`pufferflow.records` reads and counts; ``fitting`` makes a public chain of one table, ``calibration`` chooses the
least noise that is proved, ``noise`` draws it, ``release`` puts out another table's histogram, and ``planning`` says
beforehand how large its error will be.
"""
