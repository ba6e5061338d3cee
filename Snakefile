# Pufferfish privacy mechanisms for correlated data: every table and figure, from real data.
# Settings: config/config.yaml. Helpers: workflow/rules/common.smk.
from snakemake.utils import min_version

min_version("9.0")


configfile: "config/config.yaml"


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/scales.smk"
include: "workflow/rules/errors.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/tables.smk"
include: "workflow/rules/least_noise.smk"
include: "workflow/rules/related.smk"
include: "workflow/rules/cohort.smk"
include: "workflow/rules/report.smk"


depend_on_sources(workflow.rules)


rule all:
    default_target: True
    input:
        every_file(),
        "results/provenance.json",
