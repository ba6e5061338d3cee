from reproduction.job import job

with job(snakemake) as (input, output, params):
    import hashlib
    import importlib.metadata
    import json
    import os
    import platform
    from datetime import UTC, datetime
    from pathlib import Path

    from pufferflow._util.files import write_atomic

    def digests(paths):
        return {path: hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in sorted(paths)}

    packages = ("pufferflow", "numpy", "scipy", "numba", "pandas", "matplotlib", "snakemake")
    record = {
        "packages": {name: importlib.metadata.version(name) for name in packages},
        "python": platform.python_version(),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": platform.machine(),
        "system": f"{platform.system()} {platform.release()}",
        "cores": os.cpu_count(),
        "settings": params.settings,
        "samples_sha256": digests(input.samples),
        "results_sha256": digests(input.results),
    }
    write_atomic(output[0], json.dumps(record, indent=2, ensure_ascii=False) + "\n")
