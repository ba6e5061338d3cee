"""From a table of records to segments, states and counts, for the command line and the pipeline alike.

``tables`` reads chunks of CSV, Parquet or a data frame, ``reading`` says which columns to read, ``rows`` checks them,
``format`` says what their values mean and ``tally`` counts them; a ``sample`` holds the counts.
"""
