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


MINE = {"kind": "power"}


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("seeds", 1, "unknown key 'seeds'.*allowed are seed"),
        ("synthetic.epsilon", [1], "unknown key 'epsilon' in synthetic"),
        ("synthetic.epsilons", [1, -0.5], r"synthetic.epsilons\[1\] is -0.5.*greater than 0"),
        ("datasets.electricity.epsilons", [1, 5, 1.0], "lists 1.0 twice"),
        ("datasets.activity.epsilons", [], "is empty"),
        ("synthetic.alphas.stop", 0.5, "alphas.stop is 0.5.*less than 0.5"),
        ("synthetic.alphas.stop", 0.05, "below start.*increasing"),
        ("datasets.electricity.mechanisms", ["laplace"], r"\[0\] is 'laplace'.*mqm-exact"),
        ("datasets.activity.repetitions", 1, "is 1;.*at least 2"),
        ("datasets.electricity.bin_watts", 0, "bin_watts is 0;.*greater than 0"),
        ("datasets.electricity.source", "web", "source is 'web'.*bundled, downloaded, file"),
        ("datasets.electricity.source", "file", "path is empty"),
        ("datasets.electricity.path", "nowhere.csv", "datasets.electricity.source is bundled"),
        ("seed", None, "seed is None.*integer"),
        ("datasets.activity.source", "downloaded", "source is 'downloaded'.*bundled, file"),
        ("datasets.Mine", MINE, "'Mine' cannot be a name.*small letters"),
        ("datasets.mine", {}, "datasets.mine lacks the key 'kind'"),
        ("datasets.mine", MINE | {"epsilon": 1}, "unknown key 'epsilon' in datasets.mine"),
        ("datasets.mine", MINE | {"source": "file"}, "datasets.mine.path is empty"),
        ("datasets", {}, "datasets is empty"),
        ("chains", {"smoothing": 0}, "chains lacks the key 'initial_distribution'"),
        ("beyond.cohort.longest", 499, "longest is 499, below shortest, 500"),
        ("synthetic.epsilons", [1, float("nan")], r"epsilons\[1\] is not a finite number"),
        ("synthetic.epsilons", ["1e-3"], "is '1e-3'.*YAML reads it as text .write 0.001"),
    ],
)
def test_bad_settings_are_named(path, value, message):
    with pytest.raises(ConfigError, match=message) as caught:
        complete(changed(path, value))
    assert "\n" not in str(caught.value)


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
