# One rule a job of the studies; pufferflow/studies says what their steps are and which of them share a process.
for job in JOBS:

    rule:
        name:
            job.name
        input:
            job.inputs,
        output:
            outputs_of(job),
        log:
            job.log,
        priority: job.priority
        localrule: job.local
        conda:
            "../envs/pufferflow.yaml"
        threads: job.threads
        resources:
            **({"mem_mb": job.megabytes} if job.megabytes else {}),
        params:
            script=job.script,
            steps=[told(step) for step in job.steps],
            given=job.given,
            captions=captions_of(job),
            sources=sources_of(job.script, *(step.work for step in job.steps)),
        script:
            "../scripts/{params.script}.py"
