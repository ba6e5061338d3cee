# So that `snakemake` works in this folder; the workflow is where the standard layout has it.
include: "workflow/Snakefile"


workflow.default_target = "all"  # an included file does not pass its own on
