"""Checking the settings of a run: one clear sentence for the first thing that is wrong."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import jsonschema
import yaml

from pufferflow._files import write_atomic
from pufferflow.errors import ConfigError
from pufferflow.mechanisms import KNOWN
from pufferflow.studies.histograms.measure import PARTICIPANT_DP

_LIMITS = {
    "exclusiveMinimum": "greater than",
    "minimum": "at least",
    "exclusiveMaximum": "less than",
    "maximum": "at most",
}


def check_settings(config: Mapping[str, Any], schema: str | Path) -> None:
    """Check ``config`` against the closed JSON schema in ``schema`` and for sense.

    Raises
    ------
    ConfigError
        Naming the key, its value, and what is allowed.
    """
    validator = jsonschema.Draft202012Validator(_closed(_rules(schema)))
    if where := _not_finite(config):
        raise ConfigError(f"config: {where} is not a finite number; write one")
    for error in sorted(validator.iter_errors(dict(config)), key=lambda e: [str(p) for p in e.absolute_path]):
        raise ConfigError(f"config: {_sentence(error)}")
    for problem in _contradictions(config):
        raise ConfigError(f"config: {problem}")


def _rules(schema: str | Path) -> dict[str, Any]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the one in C, where it is built, is ten times faster
    rules: dict[str, Any] = yaml.load(Path(schema).read_text(encoding="utf-8"), Loader=loader)
    return rules


def _closed(rules: Any) -> Any:
    """The schema with every object closed, all its keys required, and the names of the mechanisms."""
    if isinstance(rules, list):
        return [_closed(rule) for rule in rules]
    if not isinstance(rules, Mapping):
        return rules
    closed = {name: _closed(rule) for name, rule in rules.items()}
    if isinstance(closed.get("properties"), Mapping):
        closed |= {"type": "object", "additionalProperties": False, "required": list(closed["properties"])}
    if "$defs" in closed:
        closed["$defs"]["mechanism"] = {"enum": list(KNOWN)}
        closed["$defs"]["mechanism_or_dp"] = {"enum": [PARTICIPANT_DP, *KNOWN]}
    return closed


def describe_settings(schema: str | Path) -> str:
    """Return a Markdown table of all settings; those that several studies share come once."""
    rules = _rules(schema)
    lines = dict.fromkeys(_described(rules, rules["$defs"], ""))
    return "\n".join(["| key | meaning |", "| --- | --- |", *lines]) + "\n"


def _described(rule: Mapping[str, Any], shared: Mapping[str, Any], key: str) -> Iterator[str]:
    home = shared[rule["$ref"].rpartition("/")[2]] if "$ref" in rule else {}
    properties = rule.get("properties") or home.get("properties")
    if properties:
        if key == "experiments":
            names = ", ".join(f"`{name}`" for name in properties)
            yield f"| `{key}.<name>` | {rule['description']} Names: {names}. |"
        for name, inner in properties.items():
            yield from _described(inner, shared, f"{key}.{name}" if key else name)
        return
    if "description" not in rule:
        key = re.sub(r"^experiments\.\w+\.(\w+)$", r"experiments.<name>.\1", key)
    text = rule.get("description") or home["description"]
    yield f"| `{key}` | {text.replace('|', chr(92) + '|')} |"


def main() -> int:
    """Write the table of settings into the file named second on the command line; the first is the schema."""
    schema, path = map(Path, sys.argv[1:])
    text = path.read_text(encoding="utf-8")
    before, _, old = text.partition("| key | meaning |")
    after = old.partition("\n\n")[2].lstrip()
    write_atomic(path, f"{before}{describe_settings(schema)}\n{after}")
    return 0


def _key(parts: Iterator[Any] | list[Any]) -> str:
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text or "the top level"


def _not_finite(value: Any, place: tuple[Any, ...] = ()) -> str:
    """Where a number is NaN or infinite, which no limit of the schema excludes; empty where none is."""
    if isinstance(value, float) and not math.isfinite(value):
        return _key(list(place))
    children = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    return next((within for name, child in children if (within := _not_finite(child, (*place, name)))), "")


def _is_number(value: object) -> bool:
    try:
        float(str(value))
    except ValueError:
        return False
    return isinstance(value, str)


def _sentence(error: jsonschema.ValidationError) -> str:
    where, value = _key(list(error.absolute_path)), cast(Any, error.instance)
    rule, wanted = error.validator, cast(Any, error.validator_value)
    if rule == "additionalProperties":
        allowed = list(cast(Any, error.schema)["properties"])
        unknown = [name for name in value if name not in allowed]
        return f"unknown key {unknown[0]!r} in {where}; allowed are {', '.join(allowed)}"
    if rule == "required":
        missing = [name for name in wanted if name not in value]
        return f"{where} lacks the key {missing[0]!r}; add it (config/README.md explains it)"
    if rule == "enum":
        return f"{where} is {value!r}; choose from {', '.join(map(str, wanted))}"
    if rule == "uniqueItems":
        twice = next(item for i, item in enumerate(value) if item in value[:i])
        return f"{where} lists {twice!r} twice; list every value once"
    if rule in _LIMITS:
        return f"{where} is {value}; it must be {_LIMITS[rule]} {wanted}"
    if rule == "minItems":
        return f"{where} is empty; list at least one value"
    if rule == "type":
        kinds = " or ".join(wanted) if isinstance(wanted, list) else wanted
        hint = "; YAML reads it as text (write 0.001 or 1.0e-3, not 1e-3)" if _is_number(value) else ""
        return f"{where} is {value!r}; it must be of type {kinds}{hint}"
    return f"{where}: {error.message}"


def _contradictions(config: Mapping[str, Any]) -> Iterator[str]:
    alphas = config["experiments"]["synthetic"]["alphas"]
    if alphas["stop"] < alphas["start"]:
        yield (
            f"experiments.synthetic.alphas.stop is {alphas['stop']}, below start, {alphas['start']}; "
            "give an increasing range"
        )
    for name, dataset in config["datasets"].items():
        if dataset["source"] == "file" and not dataset["path"]:
            yield f"datasets.{name}.source is file, but datasets.{name}.path is empty; give the path of your file"
        if dataset["source"] != "file" and dataset["path"]:
            yield (
                f"datasets.{name}.path is {dataset['path']!r}, but datasets.{name}.source is "
                f"{dataset['source']}; set source: file to use your file, or path: null"
            )
        if dataset["path"] and not Path(dataset["path"]).is_file():
            yield f"datasets.{name}.path is {dataset['path']!r}, which is not a file; give the path of your file"
    cohort = config["experiments"]["cohort"]
    simulated, folder = cohort["simulated"], cohort["samples"]
    if simulated["longest"] < simulated["shortest"]:
        yield (
            f"experiments.cohort.simulated.longest is {simulated['longest']}, below shortest, {simulated['shortest']}; "
            "give an increasing range"
        )
    if folder and not any(Path(folder).glob("*.json")):
        yield (
            f"experiments.cohort.samples is {folder!r}, which is not a folder with sample files (*.json); give the "
            "folder of your samples, or null to simulate"
        )


if __name__ == "__main__":
    sys.exit(main())
