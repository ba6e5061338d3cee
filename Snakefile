# Pufferfish privacy mechanisms for correlated data: every table and figure, from real data.
# Settings: config/config.yaml. Helpers: workflow/rules/common.smk.
from snakemake.utils import min_version

min_version("9.0")


configfile: "config/config.yaml"


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/studies.smk"
include: "workflow/rules/report.smk"


rule all:
    default_target: True
    input:
        every_file(),
        rules.compare_results.output,
        rules.write_report.output,
        [f"{RESULTS}/{TIMES_PAGE}"] if TIMED else [],
        f"{RESULTS}/provenance.json",
