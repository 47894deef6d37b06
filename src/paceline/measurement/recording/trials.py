"""Remedies that `run --try NAME=VALUE` applies to a PyTorch script as it runs."""

import json
from collections.abc import Callable, Mapping, Sequence

from paceline.errors import InputError
from paceline.measurement.run_job import thread_variables


def _count(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError(text)
    return value


def _size(text: str) -> float:
    value = float(text)
    if not 0 < value < 1e6:
        raise ValueError(text)
    return value


def _flag(text: str) -> bool:
    return {"0": False, "1": True}[text]


TRIALS: Mapping[str, tuple[Callable[[str], float], str]] = {
    "bucket_cap_mb": (_size, "a number of MiB"),
    "find_unused_parameters": (_flag, "0 or 1"),
    "gradient_as_bucket_view": (_flag, "0 or 1"),
    "no_sync": (_count, "the number of backward passes of a step"),
    "num_workers": (_count, "a number of data-loader workers"),
    "static_graph": (_flag, "0 or 1"),
    "threads": (_count, "a number of threads"),
}
"""Remedies by name, with their values."""


def parse_trials(texts: Sequence[str]) -> dict[str, float]:
    """``bucket_cap_mb=1`` and others as values by name."""
    found: dict[str, float] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if name not in TRIALS:
            raise InputError(f"unknown remedy '{name}' (--try)", f"one of {', '.join(TRIALS)}")
        read, expected = TRIALS[name]
        try:
            found[name] = read(value)
        except (ValueError, KeyError):
            raise InputError(
                f"invalid value '{value}' of --try {name}", f"give {expected}"
            ) from None
    return found


def trial_variables(trials: Mapping[str, float]) -> dict[str, str]:
    """Environment variables that make a watched script use these values."""
    if not trials:
        return {}
    threads = trials.get("threads")
    limits = {} if not threads else thread_variables(int(threads))
    return {"PACELINE_WATCH_TRY": json.dumps(dict(trials)), **limits}
