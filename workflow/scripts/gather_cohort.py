from reproduction.job import job

with job(snakemake) as (input, output, params):
    from reproduction import tidy
    from reproduction.beyond.cohort import summarise
    from reproduction.beyond.shown import printed

    cohort = tidy.read_all(input, "beyond")
    summary = summarise(cohort)
    tidy.write(cohort, output.rows, "beyond")
    tidy.write(summary, output.summary, "cohort_summary")
    printed(summary, "cohort").save(output.tables[0].removesuffix(".csv"))
