from reproduction.job import job

with job(snakemake) as (input, output, params):
    from reproduction import tidy
    from reproduction.beyond.measures import cohort_summary
    from reproduction.beyond.shown import printed

    cohort = tidy.read_all(input, "beyond")
    summary = cohort_summary(cohort)
    tidy.write(cohort, output.rows, "beyond")
    tidy.write(summary, output.summary, "cohort_summary")
    printed(summary, "cohort").save(output.tables[0].removesuffix(".csv"))
