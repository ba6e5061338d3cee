"""A finished run as a research object: RO-Crate metadata (the Process Run Crate profile) beside the results.

Repositories and viewers that know RO-Crate read from it what made which file, with which settings and versions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from rocrate.model.contextentity import ContextEntity
from rocrate.rocrate import ROCrate

PROFILE = "https://w3id.org/ro/wfrun/process/0.5"
LICENCE = "https://spdx.org/licenses/MIT"
FORMATS = {
    ".csv": "text/csv",
    ".md": "text/markdown",
    ".tex": "application/x-tex",
    ".json": "application/json",
    ".html": "text/html",
    ".svg": "image/svg+xml",
    ".pdf": "application/pdf",
    ".png": "image/png",
}


def describe_run(provenance: Mapping[str, Any], folder: str) -> str:
    """RO-Crate metadata of a run, as JSON text.

    Parameters
    ----------
    provenance : mapping
        What :func:`~pufferflow.reporting.provenance.full_provenance` recorded.
    folder : str
        Where the results are, as written in their paths; the crate names files relative to it.

    Returns
    -------
    str
        Contents of ``ro-crate-metadata.json``, to be put into that folder.
    """
    crate = ROCrate()
    crate.name = "pufferflow: a run of the reproduction"
    crate.description = (
        "Tables and figures of Pufferfish privacy mechanisms for correlated data, recomputed; "
        "comparison.csv states for every value of the sources whether it was reproduced."
    )
    crate.license = crate.add(_entity(crate, LICENCE, "CreativeWork", name="MIT License"))
    finished = provenance["run"]["finished"]
    crate.root_dataset["datePublished"] = finished
    crate.root_dataset["conformsTo"] = crate.add(_entity(crate, PROFILE, "CreativeWork", name="Process Run Crate"))
    version = provenance["pufferflow"]
    software = _entity(
        crate,
        "#pufferflow",
        "SoftwareApplication",
        name=f"pufferflow {version}",
        softwareVersion=version,
        sha256=provenance["package_sha256"],
        softwareRequirements=[
            f"Python {provenance['python']}",
            *(f"{name} {number}" for name, number in provenance["packages"].items()),
        ],
    )
    settings = _value(crate, "settings", json.dumps(provenance["settings"], sort_keys=True, ensure_ascii=False))
    samples = [_value(crate, f"sample-{n}", digest) for n, digest in provenance["samples_sha256"].items()]
    results = [
        crate.add_file(dest_path=path, properties=_file(path, digest))
        for path, digest in ((_within(path, folder), digest) for path, digest in provenance["results_sha256"].items())
    ]
    crate.add_action(
        instrument=crate.add(software),
        identifier="#run",
        object=[crate.add(entity) for entity in (settings, *samples)],
        result=results,
        properties={"name": "snakemake", "endTime": finished},
    )
    metadata = crate.metadata.generate()
    return json.dumps(metadata, indent=2, ensure_ascii=False) + "\n"


def _entity(crate: ROCrate, identifier: str, kind: str, **properties: Any) -> ContextEntity:
    return ContextEntity(crate, identifier, properties={"@type": kind, **properties})


def _value(crate: ROCrate, name: str, value: str) -> ContextEntity:
    return _entity(crate, f"#{name}", "PropertyValue", name=name, value=value)


def _within(path: str, folder: str) -> str:
    return PurePosixPath(path).relative_to(folder).as_posix()


def _file(path: str, digest: str) -> dict[str, str]:
    properties = {"name": PurePosixPath(path).name, "sha256": digest}
    if form := FORMATS.get(PurePosixPath(path).suffix):
        properties["encodingFormat"] = form
    return properties
