"""Checking the settings of a run: one clear sentence for the first thing that is wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import jsonschema
import yaml

from pufferflow.errors import ConfigError

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
    rules = yaml.safe_load(Path(schema).read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(rules)
    if where := _not_finite(config):
        raise ConfigError(f"config: {where} is not a finite number; write one")
    for error in sorted(validator.iter_errors(dict(config)), key=lambda e: [str(p) for p in e.absolute_path]):
        raise ConfigError(f"config: {_sentence(error)}")
    for problem in _contradictions(config):
        raise ConfigError(f"config: {problem}")


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
    return next((found for name, child in children if (found := _not_finite(child, (*place, name)))), "")


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
