"""The record of the OpenDP Deployments Registry has its fields, and says what is public."""

import re
from dataclasses import replace

import yaml
from test_release_page import HOSTILE, MOVES, OVERLAP, made, means, shares

from pufferflow._util.protection import Level
from pufferflow.publish.texts import markdown

TEXT, TEXTS = str, (list, str)
FIELDS = {
    "basic": {
        "name": TEXT, "data_curators": TEXTS, "intended_use": TEXT,
        "data_product_type": {"Summary statistics"}, "data_product_region": TEXT,
        "description": TEXT, "publication_date": {"2024-02-01"},
    },
    "dp_variant": {
        "variant_name": {"Pure DP", "Approximate DP", "Custom"}, "data_domain": TEXT,
        "unprotected_quantities": TEXT,
    },
    "privacy_loss": {
        "privacy_unit": TEXT, "privacy_unit_details": TEXT,
        "privacy_parameters": {"epsilon": float}, "privacy_parameters_details": TEXT,
    },
    "deployment_model": {
        "model_name": {"Central"}, "actors": TEXT, "release_type": {"One release"},
        "release_type_details": TEXT, "data_source_type": {"Static"},
        "access_type": {"Non-interactive"},
    },
    "accounting": {"post_processing": TEXT, "composition": TEXT},
    "implementation": {
        "preprocessing_and_hyperparameter_tuning": TEXT, "mechanisms": TEXT, "justification": TEXT,
    },
    "administrative": {"sources": TEXT, "registry_authors": TEXTS},
}  # fmt: skip
"""Fields of the registry's schema (3e9c812, July 2026) that a record has: every one of tiers 1 to 3
but `data_product_sector`, `notes` and details of the deployment model, none of which it requires;
and their types, or those of the allowed values that are used."""


def fits(value, wanted) -> bool:
    """Whether a part of a record has these fields and types."""
    if isinstance(wanted, dict):
        return value.keys() == wanted.keys() and all(fits(value[k], wanted[k]) for k in wanted)
    if isinstance(wanted, tuple):
        return isinstance(value, list) and value and all(isinstance(one, TEXT) for one in value)
    return value in wanted if isinstance(wanted, set) else isinstance(value, wanted) and value != ""


def test_a_record_has_the_fields_of_the_registry_and_names_the_class():
    for tables in ([means()], [shares(MOVES)], [means(HOSTILE, "group", word="<b>")]):
        for level, delta in ((Level(48), 0.0), (Level(None), 0.0), (Level(None), 1e-6)):
            release = made(*tables, registry=HOSTILE[4], level=level)
            release = replace(release, delta=delta)
            text = release.files()["publish/registry.yaml"]
            found = yaml.safe_load(text)  # as the registry reads it
            assert (found.pop("status"), found.pop("tier")) == ("Draft", 3)
            assert re.fullmatch("[a-z0-9-]+", found.pop("url_slug"))
            record = found.pop("deployment")
            loss, variant = record["privacy_loss"]["privacy_parameters"], record["dp_variant"]
            assert loss.pop("delta", 0.0) == delta
            assert ("Approximate DP" in variant.values()) == (delta > 0)
            assert fits(record, FIELDS), record
            assert not found
            assert markdown(OVERLAP) in record["dp_variant"]["data_domain"]
            assert record["privacy_loss"]["privacy_parameters"] == {"epsilon": release.epsilon}
            assert not re.search("[\u202a-\u202e\u2066-\u2069\x00\x1b]", text)
    assert "publish/registry.yaml" not in made().files()
