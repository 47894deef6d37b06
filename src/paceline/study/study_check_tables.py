"""Tables of a study before it runs: varied, fixed and uncontrolled factors, and aliases."""

from dataclasses import dataclass, fields
from typing import Any, ClassVar

from paceline.render.result import Part, PublicResult
from paceline.render.table import Column, Table
from paceline.report.study_sections.factors_section import UNCONTROLLED
from paceline.stats.designs import KINDS, aliases, resolution
from paceline.study.study_estimate import StudyEstimate
from paceline.study.study_factors import FACTORS
from paceline.study.study_file import ROOT_KEYS
from paceline.study.study_settings import StudySettings
from paceline.units import format_seconds, plural


@dataclass(frozen=True, repr=False)
class StudyCheck(PublicResult):
    """A study before it runs: factors, aliased effects, and the estimated time."""

    schema: ClassVar[str] = "study-check/1"
    study: str
    settings: StudySettings
    estimate: StudyEstimate

    def summary(self) -> str:
        """Combinations, launches and time."""
        ahead = self.estimate
        combinations = plural(len(self.settings.points), "combination")
        at_least = "at least " if self.settings.stopping else ""
        text = f"{combinations}, {at_least}{plural(ahead.launches, 'launch')}"
        if ahead.made:
            text += f", {ahead.made} done"
        if ahead.made == ahead.launches:
            return f"{text}: the study is complete"
        most = f"at most {format_seconds(ahead.most_seconds)}"
        if ahead.seconds is None:
            return f"{text}: {most} (no estimate: no earlier launch with these frameworks)"
        return f"{text}: about {format_seconds(ahead.seconds)}, {most}"

    def parts(self) -> list[Part]:
        """A table of factors, aliased effects, and the estimate."""
        return [factor_table(self.settings), *alias_lines(self.settings), self.summary()]

    def to_dict(self) -> dict[str, Any]:
        """Combinations of levels, launches and seconds."""
        fields = {"study": self.study, "points": self.settings.points}
        return {**fields, **vars(self.estimate), "aliases": alias_lines(self.settings)}


def factor_table(settings: StudySettings) -> Table:
    """One row per factor: varied with its levels, fixed with its value, or uncontrolled."""
    varied: dict[str, list[Any]] = {}
    for point in settings.points:
        for name, level in point.items():
            varied.setdefault(name, [])
            if level not in varied[name]:
                varied[name].append(level)
    rows = [(name, "varied", ", ".join(map(str, levels))) for name, levels in varied.items()]
    taken = {FACTORS[name] for name in varied}
    plan = {"launches", "order", "block_by", "seed", "warmup"}
    for one in fields(StudySettings):
        if one.name in ROOT_KEYS and one.name not in taken | plan:
            rows.append((one.name, "fixed", _format_setting(getattr(settings, one.name))))
    rows += [(name, "uncontrolled", "spread by the random order") for name in UNCONTROLLED]
    return Table(
        (Column("factor"), Column("kind"), Column("levels")),
        tuple(rows),
        title=f"{settings.design_kind} design: {KINDS[settings.design_kind]}",
    )


def alias_lines(settings: StudySettings) -> list[str]:
    """Aliased effects of a fractional design; empty for other designs."""
    if settings.design_kind != "fractional":
        return []
    names, generators = list(settings.factors), settings.generators
    lines = [f"Resolution {resolution(names, generators)}. Aliased effects:"]
    for group in aliases(names, generators):
        lines.append("  " + " = ".join(" x ".join(effect) or "mean" for effect in group))
    return lines


def _format_setting(value: Any) -> str:
    if value is None or value == "":
        return "default"
    if isinstance(value, tuple):
        return ", ".join("x".join(map(str, v)) if isinstance(v, tuple) else str(v) for v in value)
    return str(value)
