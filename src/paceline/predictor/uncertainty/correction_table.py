"""Reader and writer of the file of fitted corrections (script/fit-constants)."""

import json
from collections.abc import Mapping
from typing import Any

from paceline.constants import built_from_constants, constant, numbers_of
from paceline.predictor.uncertainty.correction_model import CorrectionModel, ErrorRule
from paceline.predictor.uncertainty.mixed_effects import Hierarchy, Uncertain
from paceline.predictor.uncertainty.quantities import QUANTITIES

FILE = ("data", "constants", "corrections.toml")
_DIGITS = 5


@built_from_constants
def shipped_corrections() -> CorrectionModel:
    """The corrections that come with the package (see `paceline.constants`)."""
    fitted_on = constant("corrections.computing.constant").fitted_on
    return read_corrections(numbers_of("corrections").values, fitted_on)


def read_corrections(tables: Mapping[str, Any], fitted_on: str = "") -> CorrectionModel:
    """The model of a file written by `corrections_toml`."""
    hierarchies = {}
    for quantity in QUANTITIES:
        own = tables[quantity.name]
        hierarchies[quantity.name] = Hierarchy(
            quantity,
            Uncertain(own["constant"], own["variance"]),
            own.get("deviations", {}),
            {
                factor: {level: Uncertain(*pair) for level, pair in seen.items()}
                for factor, seen in own.get("levels", {}).items()
            },
        )
    domain, memory = tables["domain"], tables["memory"]
    return CorrectionModel(
        hierarchies,
        {mode: ErrorRule(**rule) for mode, rule in tables["errors"].items()},
        fitted_on,
        frozenset(domain["devices"]),
        frozenset(domain["frameworks"]),
        int(domain["most_devices"]),
        Uncertain(memory["bias"], memory["deviation"] ** 2),
    )


def corrections_toml(model: CorrectionModel) -> str:
    """A fitted model as TOML."""
    lines = [
        "# Written by script/fit-constants; predictor/uncertainty/quantities.py describes each.",
        "# A level is [effect, variance of what is not known of it].",
        "",
        "[unit]",
        'log = ["computing.*", "bandwidth.*", "variation.*", "errors.*", "memory.*"]',
        'logit = ["unhidden.*"]',
        'devices = ["domain.most_devices"]',
        "",
        "[origin.published]",
        'status = "fitted"',
        'source = "hierarchical model, variance components by expectation maximisation"',
        f"fitted_on = {json.dumps(model.fitted_on, ensure_ascii=False)}",
        'numbers = ["*"]',
        "",
        "[domain]",
        f"devices = {json.dumps(sorted(model.devices))}",
        f"frameworks = {json.dumps(sorted(model.frameworks))}",
        f"most_devices = {model.most_devices}",
    ]
    memory = {"bias": model.memory.value, "deviation": model.memory.variance**0.5}
    lines += ["", "[memory]", *_pairs(memory)]
    for mode, rule in sorted(model.rules.items()):
        numbers = {"noise": rule.noise, "low": rule.low, "high": rule.high}
        lines += ["", f"[errors.{mode}]", *_pairs(numbers)]
    for name, each in model.hierarchies.items():
        constant = {"constant": each.constant.value, "variance": each.constant.variance}
        lines += ["", f"[{name}]", *_pairs(constant)]
        if each.deviations:
            lines += ["", f"[{name}.deviations]", *_pairs(each.deviations)]
        for factor, levels in each.levels.items():
            lines += ["", f"[{name}.levels.{json.dumps(factor)}]"]
            lines += [
                f"{_key(level)} = [{value:.{_DIGITS}g}, {variance:.{_DIGITS}g}]"
                for level, (value, variance) in sorted(levels.items())
            ]
    return "\n".join(lines) + "\n"


def _pairs(values: Mapping[str, float]) -> list[str]:
    return [f"{_key(name)} = {value:.{_DIGITS}g}" for name, value in values.items()]


def _key(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)
