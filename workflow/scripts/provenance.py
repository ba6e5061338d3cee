import json
from pathlib import Path

from _job import job

with job(snakemake):
    from pufferflow._files import write_atomic
    from pufferflow.reporting.crate import describe_run
    from pufferflow.reporting.provenance import full_provenance

    samples = {Path(path).stem: Path(path) for path in snakemake.input.samples}
    record = full_provenance(samples, snakemake.params.settings, map(Path, snakemake.input.results))
    write_atomic(snakemake.output.record, json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    write_atomic(snakemake.output.crate, describe_run(record, str(Path(snakemake.output.crate).parent)))
