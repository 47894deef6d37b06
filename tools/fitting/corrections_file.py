"""Writer of the file of fitted corrections."""

import json
from collections.abc import Mapping

from paceline.predictor.uncertainty.correction_model import CorrectionModel

FILE = ("data", "constants", "corrections.toml")
_DIGITS = 5


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
