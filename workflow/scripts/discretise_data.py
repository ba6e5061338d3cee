from reproduction.job import job

with job(snakemake) as (input, output, params):
    from reproduction import tidy
    from reproduction.data.discretise import describe_sample, discretise

    sample = discretise(input[0], params.settings, params.dataset, params.source)
    sample.save(output.sample)
    tidy.write(describe_sample(sample), output.table, "samples")
