"""A study before it runs, as tables: what is varied, fixed and left to chance; what is aliased."""

from dataclasses import fields
from typing import Any

from paceline.report.factors import UNCONTROLLED
from paceline.report.table import Column, Table
from paceline.statistics.designs import KINDS, aliases, resolution
from paceline.study.factors import FACTORS
from paceline.study.file import ROOT_KEYS
from paceline.study.settings import StudySettings


def factor_table(settings: StudySettings) -> Table:
    """One row per factor: varied with its levels, fixed with its value, or left to chance."""
    varied: dict[str, list[Any]] = {}
    for point in settings.points:
        for name, level in point.items():
            varied.setdefault(name, [])
            if level not in varied[name]:
                varied[name].append(level)
    rows = [(name, "varied", ", ".join(map(str, levels))) for name, levels in varied.items()]
    taken = {FACTORS[name].setting for name in varied}
    plan = {"launches", "order", "block_by", "seed", "warmup"}
    for one in fields(StudySettings):
        if one.name in ROOT_KEYS and one.name not in taken | plan:
            rows.append((one.name, "fixed", _words(getattr(settings, one.name))))
    rows += [(words, "left to chance", "random order spreads it") for words in UNCONTROLLED]
    return Table(
        (Column("factor"), Column("kind"), Column("levels")),
        tuple(rows),
        title=f"{settings.design_kind} design: {KINDS[settings.design_kind]}",
    )


def alias_lines(settings: StudySettings) -> list[str]:
    """Which effects a fractional design cannot tell apart; nothing for other designs."""
    if settings.design_kind != "fractional":
        return []
    names, generators = list(settings.factors), settings.generators
    lines = [f"Resolution {resolution(names, generators)}. These cannot be told apart:"]
    for group in aliases(names, generators):
        lines.append("  " + " = ".join(" x ".join(effect) or "mean" for effect in group))
    return lines


def _words(value: Any) -> str:
    if value is None or value == "":
        return "default"
    if isinstance(value, tuple):
        return ", ".join("x".join(map(str, v)) if isinstance(v, tuple) else str(v) for v in value)
    return str(value)
