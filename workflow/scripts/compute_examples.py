from reproduction.job import job

with job(snakemake) as (input, output, params):
    from pufferflow._util.files import write_atomic
    from reproduction import tidy
    from reproduction.examples import flu_table, quilts, worked_values
    from reproduction.synthetic import gk16_limits, growth

    tidy.write(worked_values(), output["values"], "values")
    tidy.write(quilts(), output.quilts, "quilts")
    others = {"mechanisms": params.mechanisms, "options": params.options}
    tidy.write(growth(params.epsilons, **params.growth, **others), output.growth, "growth")
    tidy.write(gk16_limits(params.length), output.gk16_limits, "gk16_limits")
    # the columns that `pufferflow related general` reads
    write_atomic(output.flu_network, flu_table().to_csv(index=False, lineterminator="\n"))
