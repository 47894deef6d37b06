"""Settings of a launch, a study or a prediction, for comparison."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline.analysis.configurations import finished
from paceline.errors import InputError, StoreError
from paceline.json_checks import parsed_json
from paceline.predictor.uncertainty.ratios import PredictedRate, rate_of_json
from paceline.store import Launch, Store
from paceline.user_files import read_text

_NOT_SETTINGS = frozenset(
    ["graph", "position", "replicate", "stopping", "protocol", "factors", "load_average"]
)
LARGEST_BYTES = 20_000_000


@dataclass(frozen=True)
class RunSummary:
    """One side of a comparison: settings by name, and launches or a predicted step."""

    label: str
    settings: Mapping[str, str]
    launches: Sequence[Launch] = ()
    step_seconds: float | None = None
    rate: PredictedRate | None = None


@dataclass(frozen=True)
class SettingChange:
    """A setting that differs: its value on each side, "-" if missing."""

    name: str
    first: str
    second: str


def describe(store: Store | None, name: str) -> RunSummary:
    """Summarise a study, the launch whose id begins with ``name``, or a prediction file."""
    if name.endswith(".json"):
        return _prediction(Path(name))
    if store is None:
        raise InputError(f"no store contains '{name}'", "name a store with --store")
    if name in store.studies():
        return _of_launches(name, store.study(name))
    try:
        return _of_launches(name, [store.launch(name)])
    except StoreError as error:
        raise InputError(f"no study is named '{name}', and {error.message}", error.hint) from None


def setting_changes(first: RunSummary, second: RunSummary) -> list[SettingChange]:
    """Settings that differ, in the order of the first."""
    names = dict.fromkeys([*first.settings, *second.settings])
    changes = (
        SettingChange(name, first.settings.get(name, "-"), second.settings.get(name, "-"))
        for name in names
    )
    return [one for one in changes if one.first != one.second]


def _of_launches(label: str, launches: Sequence[Launch]) -> RunSummary:
    found: dict[str, dict[str, None]] = {}
    for launch in finished(launches):
        facts = {
            "framework": launch.framework,
            "model": launch.model,
            "processes": launch.world_size,
            "nodes": launch.nodes,
            "batch_per_process": launch.batch_per_rank,
            "precision": launch.precision,
            "instrument": launch.instrument,
            **{key: value for key, value in launch.job.items() if key not in _NOT_SETTINGS},
            **{f"machine.{key}": value for key, value in launch.environment.items()},
            "versions": launch.outcome.facts.get("versions", {}),
        }
        for name, value in _flat(facts):
            found.setdefault(name, {})[value] = None
    settings = {name: ", ".join(values) for name, values in found.items()}
    return RunSummary(label, settings, launches)


def _prediction(path: Path) -> RunSummary:
    """First prediction in the output of ``paceline predict --json``."""
    hint = "write it with 'paceline predict ... --json > FILE'"
    try:
        document = parsed_json(read_text(path, LARGEST_BYTES, "prediction"))
        one = document["predictions"][0]
        seconds = float(one["step_seconds"])
    except (ValueError, KeyError, IndexError, TypeError) as error:
        cause = f"{type(error).__name__}: {error}"
        raise InputError(f"{path} is not a prediction ({cause})", hint) from None
    settings = dict(_flat({k: v for k, v in one.items() if not isinstance(v, float)}))
    try:
        rate = rate_of_json(one)
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        rate = None  # written by version 0.1
    return RunSummary(str(path), settings, (), seconds, rate)


def _flat(value: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    for key, item in value.items():
        if key in _NOT_SETTINGS:
            continue
        if isinstance(item, Mapping):
            yield from _flat(item, f"{before}{key}.")
        else:
            yield f"{before}{key}", item if isinstance(item, str) else json.dumps(item)
