# One rule a job of a study; pufferflow/studies says what they are.
for step in STEPS:

    rule:
        name:
            step.name
        input:
            **step.inputs,
        output:
            **outputs_of(step),
        log:
            step.log,
        localrule: step.local
        conda:
            "../envs/pufferflow.yaml"
        threads: step.threads
        resources:
            **({"mem_mb": step.megabytes} if step.megabytes else {}),
        params:
            kind=step.kind,
            work=step.work,
            settings=dict(step.settings),
            published=step.published,
            given=step.given,
            caption=step.section.caption if step.section else "",
            sources=sources_of(step.kind, step.work),
        script:
            "../scripts/{params.kind}.py"
