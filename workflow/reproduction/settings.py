"""The settings of a run: defaults of data sets, and one sentence per invalid value."""

import math
import re
import sys
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator

from pufferflow._util.files import write_atomic
from pufferflow.errors import ConfigError
from pufferflow.mechanisms import MECHANISMS

SCHEMA = Path(__file__).parents[1] / "schemas/config.schema.yaml"

SENTENCES = {
    "additionalProperties": "unknown key {found!r} in {key}; allowed are {wanted}",
    "required": "{key} lacks the key {found!r}; add it (config/README.md explains it)",
    "enum": "{key} is {value!r}; choose from {wanted}",
    "uniqueItems": "{key} lists {found!r} twice; list every value once",
    "exclusiveMinimum": "{key} is {value}; it must be greater than {wanted}",
    "minimum": "{key} is {value}; it must be at least {wanted}",
    "exclusiveMaximum": "{key} is {value}; it must be less than {wanted}",
    "maximum": "{key} is {value}; it must be at most {wanted}",
    "minItems": "{key} is empty or too short; give at least {wanted}",
    "minProperties": "{key} is empty; give at least {wanted}",
    "type": "{key} is {value!r}; it must be of type {wanted}",
    "pattern": "{value!r} cannot be a name or value in {key}; data sets have names of small "
    "letters, digits and _, other than 'synthetic'",
}
"""Messages for values that break a rule of the schema."""


def complete(config: dict[str, Any]) -> None:
    """Fill in the defaults of data sets and check all settings; raises ConfigError."""
    rules, datasets = _rules(), config.get("datasets")
    for dataset in datasets.values() if isinstance(datasets, dict) else ():
        if isinstance(dataset, dict):
            kind = rules["$defs"].get(str(dataset.get("kind")), {})
            for name, rule in kind.get("properties", {}).items():
                if "default" in rule:
                    dataset.setdefault(name, rule["default"])
    errors = sorted(Draft202012Validator(rules).iter_errors(config), key=lambda e: e.json_path)
    for problem in chain(_not_finite(config), map(_sentence, errors), _contradictions(config)):
        raise ConfigError(f"config: {problem}")


def _rules() -> dict[str, Any]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the one in C is ten times faster
    rules: dict[str, Any] = yaml.load(SCHEMA.read_text(encoding="utf-8"), Loader=loader)
    for name in ("mechanism", "mechanism_or_dp"):
        rules["$defs"][name]["enum"][:0] = MECHANISMS
    return rules


def _not_finite(value: Any, key: str = "") -> Iterator[str]:
    """Yield a sentence for each number that is not finite, which no schema excludes."""
    if isinstance(value, float) and not math.isfinite(value):
        yield f"{key} is not a finite number; write one"
    for name, child in value.items() if isinstance(value, dict) else ():
        yield from _not_finite(child, f"{key}.{name}" if key else name)
    for index, child in enumerate(value) if isinstance(value, list) else ():
        yield from _not_finite(child, f"{key}[{index}]")


def _sentence(error: Any) -> str:
    """Return the sentence about an error that jsonschema found."""
    rule, value, wanted = error.validator, error.instance, error.validator_value
    found = error.message
    if rule == "additionalProperties":
        wanted = error.schema["properties"]
        found = next(name for name in value if name not in wanted)
    elif rule == "required":
        found = next(name for name in wanted if name not in value)
    elif rule == "uniqueItems":
        found = next(item for i, item in enumerate(value) if item in value[:i])
    if isinstance(wanted, list | dict):
        wanted = (" or " if rule == "type" else ", ").join(map(str, wanted))
    if rule == "type" and re.fullmatch(r"[-+]?\d+e[-+]?\d+", str(value)):
        wanted += "; YAML reads it as text (write 0.001 or 1.0e-3, not 1e-3)"
    template = SENTENCES.get("pattern" if rule == "not" else rule, "{key}: {found}")
    key = error.json_path.removeprefix("$").removeprefix(".") or "the top level"
    return template.format(key=key, value=value, wanted=wanted, found=found)


def _contradictions(config: Mapping[str, Any]) -> Iterator[str]:
    alphas, cohort = config["synthetic"]["alphas"], config["beyond"]["cohort"]
    if alphas["stop"] < alphas["start"]:
        yield f"synthetic.alphas.stop is {alphas['stop']}, below start; give an increasing range"
    if cohort["longest"] < cohort["shortest"]:
        yield "beyond.cohort: longest is {longest}, below shortest, {shortest}".format(**cohort)
    for name, dataset in config["datasets"].items():
        source, path, key = dataset["source"], dataset["path"], f"datasets.{name}"
        if source != "file" and path:
            yield f"{key}.path is {path!r}, but {key}.source is {source}; set source: file"
        elif source == "file" and not Path(path or "").is_file():
            yield f"{key}.path is {path or 'empty'}, not a file; give the path of your file"


def describe() -> str:
    """Return a Markdown table of all settings, made of the descriptions in the schema."""
    rules = _rules()
    kinds = {f"<{kind}>": rules["$defs"][kind] for kind in ("activity", "power")}
    rules["properties"]["datasets"]["properties"] = kinds
    rows = _described(rules, rules["$defs"], "")
    return "\n".join(["| key | meaning |", "| --- | --- |", *rows]) + "\n"


def _described(rule: Mapping[str, Any], shared: Mapping[str, Any], key: str) -> Iterator[str]:
    rule = {**shared.get(rule.get("$ref", "").rpartition("/")[2], {}), **rule}
    if rule.get("properties") and rule["type"] == "object":
        for name, inner in rule["properties"].items():
            yield from _described(inner, shared, f"{key}.{name}" if key else name)
    else:
        default = f" Default: `{rule['default']}`." if rule.get("default") is not None else ""
        text = rule["description"].replace("|", "\\|")
        yield f"| `{key}` | {text}{default} |"


if __name__ == "__main__":
    path = Path(sys.argv[1])
    table = re.compile(r"^\| key \| meaning \|\n(\|.*\n)*", re.MULTILINE)
    write_atomic(path, table.sub(lambda _: describe(), path.read_text(encoding="utf-8")))
