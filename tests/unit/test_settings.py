import copy
from pathlib import Path

import pytest
import yaml

import pufferflow as pf
from pufferflow.studies.settings import check_settings, describe_settings

ROOT = Path(__file__).parents[2]
SCHEMA = ROOT / "workflow/schemas/config.schema.yaml"
CONFIG = yaml.safe_load((ROOT / "config/config.yaml").read_text(encoding="utf-8"))


def changed(path, value):
    config = copy.deepcopy(CONFIG)
    *parents, last = path.split(".")
    place = config
    for name in parents:
        place = place[name]
    place[last] = value
    return config


def test_shipped_config_is_valid():
    check_settings(CONFIG, SCHEMA)


def test_quick_overlay_only_overrides_existing_keys():
    def inside(overlay, config):
        return all(
            key in config and (not isinstance(value, dict) or inside(value, config[key]))
            for key, value in overlay.items()
        )

    assert inside(yaml.safe_load((ROOT / "config/quick.yaml").read_text(encoding="utf-8")), CONFIG)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("seeds", 1, ["unknown key 'seeds'", "allowed are seed"]),
        ("experiments.synthetic.epsilon", [1], ["unknown key 'epsilon'", "experiments.synthetic"]),
        ("experiments.synthetic.epsilons", [1, -0.5], ["experiments.synthetic.epsilons[1] is -0.5", "greater than 0"]),
        ("experiments.synthetic.epsilons", [0], ["is 0;", "greater than 0"]),
        ("experiments.electricity.epsilons", [1, 5, 1.0], ["lists 1.0 twice"]),
        ("experiments.activity.epsilons", [], ["is empty"]),
        ("experiments.activity.epsilons", ["1e0"], ["is '1e0'", "type number"]),
        ("experiments.synthetic.alphas.stop", 0.5, ["alphas.stop is 0.5", "less than 0.5"]),
        ("experiments.synthetic.alphas.stop", 0.05, ["below start", "increasing"]),
        ("experiments.electricity.mechanisms", ["laplace"], ["mechanisms[0] is 'laplace'", "mqm-exact"]),
        ("experiments.synthetic.mechanisms", ["dp"], ["mechanisms[0] is 'dp'"]),
        ("experiments.activity.repetitions", 1, ["is 1;", "at least 2"]),
        ("datasets.electricity.bins", 1, ["bins is 1", "at least 2"]),
        ("datasets.electricity.source", "web", ["source is 'web'", "bundled, download, file"]),
        ("datasets.electricity.source", "file", ["path is empty"]),
        ("datasets.electricity.path", "nowhere.csv", ["datasets.electricity.source is bundled"]),
        ("datasets.activity.gap_minutes", -1, ["gap_minutes is -1", "at least 0"]),
        ("seed", None, ["seed is None", "integer"]),
        ("experiments.cohort.chunks", 0, ["chunks is 0", "at least 1"]),
        ("experiments.cohort.simulated.persistence", 1, ["persistence is 1;", "less than 1"]),
        ("experiments.cohort.simulated.longest", 499, ["longest is 499, below shortest, 500"]),
        ("experiments.synthetic.epsilons", [1, float("nan")], ["epsilons[1] is not a finite number"]),
        ("experiments.synthetic.epsilons", ["1e-3"], ["epsilons[0] is '1e-3'", "YAML reads it as text (write 0.001"]),
        ("experiments.cohort.samples", "no/such", ["samples is 'no/such'", "folder", "null to simulate"]),
    ],
)
def test_bad_settings_are_named(path, value, words):
    with pytest.raises(pf.ConfigError) as caught:
        check_settings(changed(path, value), SCHEMA)
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message


def test_missing_key_is_named():
    config = copy.deepcopy(CONFIG)
    del config["chains"]["smoothing"]
    with pytest.raises(pf.ConfigError, match="chains lacks the key 'smoothing'"):
        check_settings(config, SCHEMA)


def test_missing_file_is_named():
    config = changed("datasets.electricity.source", "file")
    config["datasets"]["electricity"]["path"] = "no/such.csv"
    with pytest.raises(pf.ConfigError, match=r"no/such\.csv.*not a file"):
        check_settings(config, SCHEMA)


def test_settings_take_exactly_the_registered_mechanisms():
    every = list(pf.MECHANISMS)
    check_settings(changed("experiments.synthetic.mechanisms", every), SCHEMA)
    check_settings(changed("experiments.activity.mechanisms", [*every, "dp"]), SCHEMA)
    with pytest.raises(pf.ConfigError, match=f"choose from {', '.join(every)}$"):
        check_settings(changed("experiments.synthetic.mechanisms", ["mine"]), SCHEMA)


def test_every_setting_is_described():
    """Every leaf of the schema has a description, and config/README.md explains every key of config.yaml."""

    def leaves(rules, defs, where=""):
        if "$ref" in rules:
            rules = {**defs[rules["$ref"].rpartition("/")[2]], **rules}
        if "properties" in rules:
            for name, child in rules["properties"].items():
                yield from leaves(child, defs, f"{where}.{name}")
        else:
            yield where, rules

    rules = yaml.safe_load(SCHEMA.read_text(encoding="utf-8"))
    undescribed = [where for where, leaf in leaves(rules, rules["$defs"]) if "description" not in leaf]
    assert undescribed == []

    readme = (ROOT / "config/README.md").read_text(encoding="utf-8")

    def keys(config):
        for name, value in config.items():
            yield name
            if isinstance(value, dict):
                yield from keys(value)

    structural = {"start", "stop", "step"}
    assert [key for key in keys(CONFIG) if key not in structural and key not in readme] == []


def test_the_table_of_settings_is_current():
    readme = (ROOT / "config/README.md").read_text(encoding="utf-8")
    table = describe_settings(SCHEMA)
    assert table.count("\n") > 60
    assert f"\n\n{table}\n" in readme, "run `make settings`"
