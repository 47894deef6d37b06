"""The files of fitted constants: the full fit for people, the held-out fits for validation."""

import gzip
import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from paceline.predictor.fitted.effects import Effects
from paceline.predictor.fitted.intervals import IntervalRule, Intervals

EFFECTS_FILE = "effects.toml"
HELD_OUT_FILE = "held_out.json.gz"


@dataclass(frozen=True)
class Fitted:
    """Everything that was fitted on all reference rows, and on what.

    ``devices`` and ``frameworks`` are the names in those rows.
    """

    effects: Effects
    intervals: Intervals
    fitted_on: str
    devices: frozenset[str]
    frameworks: frozenset[str]


@dataclass(frozen=True)
class HeldOut:
    """Fits without some rows: by fold of groups, and by family (source).

    ``folds`` has the fold of every group that the full fit has seen: rows of others need no
    held-out fit.
    """

    by_fold: tuple[Effects, ...]
    by_family: Mapping[str, Effects]
    folds: Mapping[str, int]

    def without_group(self, group: str) -> Effects | None:
        """Effects fitted without ``group``; None if no fit has seen it."""
        return self.by_fold[self.folds[group]] if group in self.folds else None

    def without_family(self, family: str) -> Effects | None:
        """Effects fitted without ``family``; None if no fit has seen it."""
        return self.by_family.get(family)


@lru_cache(maxsize=1)
def fitted() -> Fitted:
    """The full fit that comes with the package."""
    document = tomllib.loads((_folder() / EFFECTS_FILE).read_text(encoding="utf-8"))
    rules = {
        mode: {distance: IntervalRule(**rule) for distance, rule in by_distance.items()}
        for mode, by_distance in document["intervals"].items()
    }
    effects = Effects(document["constants"], document.get("effects", {}))
    return Fitted(
        effects,
        Intervals(rules),
        document["fitted_on"],
        frozenset(document["devices"]),
        frozenset(document["frameworks"]),
    )


@lru_cache(maxsize=1)
def held_out() -> HeldOut:
    """The held-out fits that come with the package."""
    text = gzip.decompress((_folder() / HELD_OUT_FILE).read_bytes()).decode("utf-8")
    document = json.loads(text)
    return HeldOut(
        tuple(_effects(each) for each in document["folds"]),
        {family: _effects(each) for family, each in document["families"].items()},
        document["groups"],
    )


def effects_toml(result: Fitted) -> str:
    """The file of the full fit."""
    lines = [
        "# Written by script/fit-constants. paceline.predictor.fitted says what each number is.",
        "# Quantities are a constant plus one effect per factor at hand, on the scale given there.",
        f"fitted_on = {json.dumps(result.fitted_on, ensure_ascii=False)}",
        f"devices = {json.dumps(sorted(result.devices), indent=2)}",
        f"frameworks = {json.dumps(sorted(result.frameworks), indent=2)}",
        "",
        "[constants]",
        *_pairs(result.effects.constants),
    ]
    for quantity, factors in sorted(result.effects.levels.items()):
        for factor, levels in sorted(factors.items()):
            lines += ["", f"[effects.{quantity}.{json.dumps(factor)}]", *_pairs(levels)]
    for mode, by_distance in result.intervals.rules.items():
        for distance, rule in by_distance.items():
            lines += ["", f"[intervals.{mode}.{distance}]", *_pairs(asdict(rule))]
    return "\n".join(lines) + "\n"


def held_out_bytes(result: HeldOut) -> bytes:
    """The file of the held-out fits, the same bytes for the same fits."""
    document = {
        "folds": [asdict(each) for each in result.by_fold],
        "families": {family: asdict(each) for family, each in sorted(result.by_family.items())},
        "groups": dict(result.folds),
    }
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return gzip.compress(text.encode("utf-8"), mtime=0)


def _pairs(values: Mapping[str, float]) -> list[str]:
    return [
        f"{json.dumps(name, ensure_ascii=False)} = {value}"
        for name, value in sorted(values.items())
    ]


def _effects(document: Mapping[str, Any]) -> Effects:
    return Effects(document["constants"], document["levels"])


def _folder() -> Traversable:
    return resources.files("paceline") / "data" / "fitted"
