"""Public function `compare`: settings and step time of two studies, launches or predictions."""

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from paceline.analysis.regression import TimeChange, time_changes
from paceline.analysis.regression_tables import campaign_warnings, changes_json, changes_table
from paceline.analysis.run_summary import RunSummary, SettingChange, describe, setting_changes
from paceline.errors import InputError
from paceline.predictor.uncertainty.ratios import Ratio, ratio_of_rates
from paceline.render.result import PublicResult
from paceline.render.table import Column, Table
from paceline.store import Launch, Store, default_store_path
from paceline.units import format_seconds, plural

STUDIES_OF_HISTORY = 30
"""Newest other studies used to estimate the variance between studies; bounds the time to read."""
LONGEST_SETTING = 60


@dataclass(frozen=True, repr=False)
class RunComparison(PublicResult):
    """B compared with A: settings that differ, and changes of step time by configuration."""

    schema: ClassVar[str] = "compare/2"
    first: RunSummary
    second: RunSummary
    settings: tuple[SettingChange, ...]
    changes: tuple[TimeChange, ...]

    @property
    def regressions(self) -> tuple[TimeChange, ...]:
        """Configurations that are significantly slower, by more than the threshold."""
        return tuple(one for one in self.changes if one.is_regression)

    @property
    def are_studies(self) -> bool:
        """Whether both sides are studies with several launches."""
        return all(len(one.launches) > 1 for one in (self.first, self.second))

    def summary(self) -> str:
        """The number of configurations that are slower, or the ratio of predictions."""
        if self.changes:
            return f"{len(self.regressions)} of {plural(len(self.changes), 'configuration')} slower"
        lines = self._predicted_lines()
        return lines[-1] if lines else "no configuration in common: step times are not compared"

    def parts(self) -> list[str | Table]:
        """Settings, then step times."""
        first, second = self.first.label, self.second.label
        parts: list[str | Table] = ["Settings, machine and versions are identical."]
        if self.settings:
            rows = ((one.name, _short(one.first), _short(one.second)) for one in self.settings)
            parts = [Table((Column("setting"), Column(first), Column(second)), tuple(rows))]
        if self.changes:
            parts.append(changes_table(self.changes))
        return [*parts, *self._predicted_lines()[:-1], self.summary()]

    def warnings(self) -> list[str]:
        """Warnings about a single campaign, and about different machines."""
        lines = campaign_warnings(self.changes)
        launches = (*self.first.launches, *self.second.launches)
        machines = sorted({str(one.environment.get("cpu_model")) for one in launches})
        if len(machines) > 1:
            lines.append(f"warning: the studies ran on different machines: {', '.join(machines)}")
        return lines

    def to_markdown(self) -> str:
        """The table of step times as Markdown, for a pull request."""
        from paceline.render.markup import to_markdown

        warned = "".join(f"\n{line}\n" for line in campaign_warnings(self.changes))
        table = to_markdown(changes_table(self.changes)) if self.changes else ""
        return f"### {self.summary()}\n\n{table}{warned}"

    def to_dict(self) -> dict[str, Any]:
        """Settings that differ, and changes of each configuration."""
        return {
            "first": self.first.label,
            "second": self.second.label,
            "settings": [asdict(one) for one in self.settings],
            "changes": changes_json(self.changes),
            "regressions": len(self.regressions),
            "step_seconds": [self.first.step_seconds, self.second.step_seconds],
            "step_ratio": None if self.ratio is None else asdict(self.ratio),
        }

    def rows(self) -> Sequence[dict[str, Any]]:
        """One row per configuration."""
        return changes_json(self.changes)

    def _predicted_lines(self) -> list[str]:
        sides = (self.first, self.second)
        known = [(one.label, one.step_seconds) for one in sides if one.step_seconds]
        lines = [f"{name}: predicted {format_seconds(seconds)} per step" for name, seconds in known]
        if len(known) == 2:
            (first, before), (second, after) = known
            lines.append(f"{second} / {first}: {after / before:.3f}{self._interval_text()}")
        return lines

    def _interval_text(self) -> str:
        """The 90 % interval of the ratio of two predicted steps, whose errors are shared."""
        found = self.ratio
        if found is None:
            return ""
        verdict = "" if found.distinguishable else "; not distinguishable"
        return f" [{found.low:.3f}, {found.high:.3f}] (90 % interval of the ratio{verdict})"

    @property
    def ratio(self) -> Ratio | None:
        """Predicted step time of B over A; None for measurements."""
        if self.first.rate is None or self.second.rate is None:
            return None
        return ratio_of_rates(self.first.rate, self.second.rate).of_steps(self._step_ratio())

    def _step_ratio(self) -> float:
        assert self.first.step_seconds and self.second.step_seconds
        return self.second.step_seconds / self.first.step_seconds


def compare(
    first: str,
    second: str,
    *,
    threshold: float = 0.02,
    history: bool = True,
    store: Path | str | None = None,
) -> RunComparison:
    """Compare two studies, launches (a prefix of the id) or files of ``predict --json``.

    Every configuration that both measured is tested for a change of step time; a slowdown of more
    than ``threshold`` (relative) is a regression. With ``history`` the variance between the other
    studies of the store counts as noise, if three or more of them measured the configuration.
    """
    if not 0 <= threshold < math.inf:
        raise InputError(f"threshold must be at least 0 (got {threshold:g})", "use 0.02 for 2 %")
    earlier: list[Launch] = []
    with ExitStack() as stack:
        opened = None
        if not (first.endswith(".json") and second.endswith(".json")):
            path = Path(store) if store is not None else default_store_path()
            opened = stack.enter_context(Store(path, create=False))
        sides = describe(opened, first), describe(opened, second)
        if opened is not None and history and all(len(one.launches) > 1 for one in sides):
            others = [name for name in opened.studies() if name not in (first, second)]
            names = others[-STUDIES_OF_HISTORY:]
            earlier = [launch for name in names for launch in opened.launches(name)]
    try:
        changes = time_changes(sides[0].launches, sides[1].launches, earlier, threshold)
    except InputError:  # no configuration in common
        changes = []
    return RunComparison(*sides, tuple(setting_changes(*sides)), tuple(changes))


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_SETTING else f"{text[: LONGEST_SETTING - 3]}..."
