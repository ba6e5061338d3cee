"""A release as a record of the OpenDP Deployments Registry (registry.opendp.org).

Its schema is schemas/deployments-schema.yaml of github.com/opendp/deployments-registry-data. Like
the statement it is made from public facts. Strings are Markdown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pufferflow.publish.statement import secret_of, sections_of, span_of
from pufferflow.publish.texts import markdown, visible

if TYPE_CHECKING:
    from pufferflow.publish.result import Release

MISSING = "To be completed by the curator."
"""Value of fields that a release cannot fill in."""


def registry_record(made: Release, curator: str) -> str:
    """Return the record of tier 3, as JSON, which is YAML; its status is Draft."""
    published, protected, assumed, not_protected, account, method = (
        _points(points) for _, points in sections_of(made)
    )
    whole, curator = made.level.whole, visible(curator)
    theta = "" if not made.documents else " Θ and the certificate are published with the values."
    deployment = {
        "basic": {
            "name": markdown(f"{made.title}, {span_of(made)}".removesuffix(", ")),
            "data_curators": [curator],
            "intended_use": MISSING,
            "data_product_type": "Summary statistics",
            "data_product_region": MISSING,
            "description": published,
            "publication_date": made.date,
        },
        "dp_variant": {
            "variant_name": f"{'Approximate' if made.delta else 'Pure'} DP" if whole else "Custom",
            "data_domain": assumed,
            "unprotected_quantities": not_protected,
        },
        "privacy_loss": {
            "privacy_unit": "User-level" if whole else markdown(secret_of(made)),
            "privacy_unit_details": protected,
            "privacy_parameters": {"epsilon": made.epsilon}
            | ({"delta": made.delta} if made.delta else {}),
            "privacy_parameters_details": "Adjacent tables differ in the readings of one person."
            if whole
            else "Pufferfish privacy: ε bounds the change of an adversary's odds under every "
            f"distribution of the class Θ, which the data domain states.{theta}",
        },
        "deployment_model": {
            "model_name": "Central",
            "actors": f"{markdown(curator)} has the readings and adds the noise.",
            "release_type": "One release",
            "release_type_details": account,
            "data_source_type": "Static",
            "access_type": "Non-interactive",
        },
        "accounting": {
            "post_processing": "Each `estimate` is the possible value nearest to the noisy `value`:"
            " shares are not negative and have sum 1. Bands are cut to possible values.",
            "composition": account,
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": "pufferflow chooses nothing by the values: "
            "bounds, thresholds, bins and ε are options. How they were chosen: " + MISSING,
            "mechanisms": method,
            "justification": MISSING,
        },
        "administrative": {
            "sources": "Song, Wang and Chaudhuri, Pufferfish Privacy Mechanisms for Correlated "
            "Data, SIGMOD 2017, doi:10.1145/3035918.3064025",
            "registry_authors": [curator],
        },
    }
    slug = "-".join(re.findall("[a-z0-9]+", f"{curator} {made.title} {made.date}".lower()))
    record = {"url_slug": slug, "status": "Draft", "tier": 3, "deployment": deployment}
    text = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    return re.sub('("(?:epsilon|delta)": [0-9]+)e', r"\1.0e", text)  # 1e-06 is not a number in YAML


def _points(points: Sequence[str]) -> str:
    return "\n".join(f"- {markdown(point)}" for point in points)
