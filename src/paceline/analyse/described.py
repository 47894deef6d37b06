"""What a launch, a study or a prediction was asked for, as settings to be set side by side."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline.errors import InputError, StoreError
from paceline.json_checks import parsed_json
from paceline.store import Launch, Store
from paceline.user_files import read_text

_NOT_SETTINGS = frozenset(
    ["graph", "position", "replicate", "stopping", "protocol", "factors", "load_average"]
)
LARGEST_BYTES = 20_000_000


@dataclass(frozen=True)
class Described:
    """One side of a comparison: its settings by name, and its launches or predicted seconds."""

    label: str
    settings: Mapping[str, str]
    launches: Sequence[Launch] = ()
    step_seconds: float | None = None


@dataclass(frozen=True)
class SettingChange:
    """A setting that differs: its value on each side, "-" where a side has none."""

    name: str
    first: str
    second: str


def describe(store: Store | None, name: str) -> Described:
    """A study, the one launch whose id begins so, or a prediction in a JSON file."""
    if name.endswith(".json"):
        return _prediction(Path(name))
    if store is None:
        raise InputError(f"there is no store with '{name}' in it", "--store names one")
    if name in store.studies():
        return _of_launches(name, store.study(name))
    try:
        return _of_launches(name, [store.launch(name)])
    except StoreError as error:
        raise InputError(f"no study is called '{name}', and {error.message}", error.hint) from None


def setting_changes(first: Described, second: Described) -> list[SettingChange]:
    """Settings in which the two differ, in the order of the first."""
    names = dict.fromkeys([*first.settings, *second.settings])
    changes = (
        SettingChange(name, first.settings.get(name, "-"), second.settings.get(name, "-"))
        for name in names
    )
    return [one for one in changes if one.first != one.second]


def _of_launches(label: str, launches: Sequence[Launch]) -> Described:
    found: dict[str, dict[str, None]] = {}
    for launch in launches:
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
    return Described(label, settings, launches)


def _prediction(path: Path) -> Described:
    """The first prediction of what ``paceline predict --json`` printed."""
    hint = "write it with 'paceline predict ... --json > FILE'"
    try:
        document = parsed_json(read_text(path, LARGEST_BYTES, "prediction"))
        one = document["predictions"][0]
        seconds = float(one["step_seconds"])
    except (ValueError, KeyError, IndexError, TypeError) as error:
        said = f"{type(error).__name__}: {error}"
        raise InputError(f"{path} is no prediction ({said})", hint) from None
    settings = dict(_flat({k: v for k, v in one.items() if not isinstance(v, float)}))
    return Described(str(path), settings, (), seconds)


def _flat(value: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    for key, item in value.items():
        if key in _NOT_SETTINGS:
            continue
        if isinstance(item, Mapping):
            yield from _flat(item, f"{before}{key}.")
        else:
            yield f"{before}{key}", item if isinstance(item, str) else json.dumps(item)
