import copy
from pathlib import Path

import pytest
import yaml
from snakemake.utils import update_config

from pufferflow.errors import ConfigError
from pufferflow.mechanisms import MECHANISMS
from reproduction.settings import SCHEMA, complete, describe

ROOT = Path(__file__).parents[2]
CONFIG = yaml.safe_load((ROOT / "config/config.yaml").read_text(encoding="utf-8"))


def changed(path, value):
    config = copy.deepcopy(CONFIG)
    *parents, last = path.split(".")
    place = config
    for name in parents:
        place = place[name]
    place[last] = value
    return config


@pytest.mark.parametrize("overlay", [None, "config/quick.yaml"])
def test_shipped_settings_are_valid(overlay):
    config = copy.deepcopy(CONFIG)
    if overlay:
        update_config(config, yaml.safe_load((ROOT / overlay).read_text(encoding="utf-8")))
    complete(config)


def test_bad_settings_are_one_sentence_each(golden):
    """A line of the stored table: a setting, as in YAML, and what is said of it."""
    lines, found = Path(__file__).with_name("golden") / "bad_settings.txt", ""
    for line in lines.read_text(encoding="utf-8").splitlines():
        setting = line.partition(" → ")[0]
        path, value = setting.split(": ", 1)
        with pytest.raises(ConfigError) as caught:
            complete(changed(path, yaml.safe_load(value)))
        found += f"{setting} → {caught.value}\n".replace(", ".join(MECHANISMS), "(mechanisms)")
    golden("bad_settings.txt", found)


def test_settings_take_exactly_the_registered_mechanisms():
    every = list(MECHANISMS)
    complete(changed("synthetic.mechanisms", [*every, "wasserstein-grid"]))
    complete(changed("datasets.activity.mechanisms", [*every, "participant-dp"]))
    complete(changed("timings.mechanisms", every))
    with pytest.raises(ConfigError, match=f"choose from {', '.join(every)}$"):
        complete(changed("timings.mechanisms", ["mine"]))


def test_the_schema_is_closed_and_describes_every_setting():
    """Objects are closed in the schema itself, and every key has a description."""

    def objects(rule):
        if isinstance(rule, dict) and "properties" in rule and rule.get("type") == "object":
            yield rule
        for child in rule.values() if isinstance(rule, dict) else ():
            yield from objects(child)

    rules = yaml.safe_load(SCHEMA.read_text(encoding="utf-8"))
    found = [rule for rule in objects(rules) if rule is not rules["$defs"]["dataset"]]
    assert len(found) > 20
    for rule in found:
        assert rule["additionalProperties"] is False
        assert set(rule["required"]) == set(rule["properties"])
        for name, child in rule["properties"].items():
            shared = rules["$defs"].get(child.get("$ref", "").rpartition("/")[2], {})
            assert "description" in child or "description" in shared or "properties" in child, name


def test_the_table_of_settings_is_current():
    readme = (ROOT / "config/README.md").read_text(encoding="utf-8")
    table = describe()
    assert table.count("\n") > 60
    assert f"\n\n{table}\n" in readme, "run `make settings`"
