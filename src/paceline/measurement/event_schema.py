"""Validation of events against the protocol: a file may be damaged or foreign."""

from typing import Any

from paceline.json_checks import (
    Check,
    is_amount,
    is_count,
    is_loss,
    is_number,
    is_object,
    is_text,
    list_of,
    object_of,
    row_of,
    with_fields,
)
from paceline.store.rows import is_layer_timing

MOST_RANKS = 10**7


def is_valid_event(event: dict[str, Any]) -> bool:
    """Whether an event has the fields of its kind with valid values."""
    return with_fields(_KINDS.get(event["event"], {}), _ANYWHERE)(event)


def _is_rank(value: Any) -> bool:
    return is_count(value) and value <= MOST_RANKS


_STEP = with_fields(
    {
        "step_seconds": is_amount,
        "cpu_seconds": is_amount,
        "segments": list_of(row_of(is_text, is_number, is_number)),
        "messages": list_of(row_of(is_text, is_amount, is_number, is_number)),
        "fetches": is_count,
        "samples": is_count,
    },
    {
        "begun": is_number,
        "elements": is_amount,
        "delay_seconds": is_amount,
        "collection_seconds": is_amount,
        "marks": list_of(row_of(is_number, is_number, is_number)),
        "stacks": list_of(row_of(is_number, is_count, is_text, is_count)),
    },
)

_BUCKET = with_fields({"bytes": is_amount, "start_seconds": is_amount, "end_seconds": is_amount})

_TIMELINE = with_fields(
    {
        "input_seconds": is_amount,
        "forward_seconds": is_amount,
        "backward_seconds": is_amount,
        "update_seconds": is_amount,
        "step_seconds": is_amount,
        "buckets": list_of(_BUCKET),
    }
)

_EPOCH = with_fields(
    {
        "steps": is_count,
        "test_samples": is_count,
        "test_loss": is_loss,
        "correct": is_count,
        "evaluation_seconds": is_amount,
    }
)

_KINDS: dict[str, dict[str, Check]] = {
    "hello": {"rank": _is_rank, "world": _is_rank, "versions": is_object},
    "steps": {
        "rank": _is_rank,
        "wall_seconds": list_of(is_amount),
        "cpu_seconds": list_of(is_amount),
        "losses": list_of(is_loss),
    },
    "timelines": {"steps": list_of(_TIMELINE)},
    "parts": {"parts": object_of(list_of(is_amount))},
    "layers": {"layers": list_of(is_layer_timing)},
    "epochs": {"epochs": list_of(_EPOCH)},
    "emulated": {"scheduler": is_text, "late_seconds": list_of(is_amount)},
    "failure": {"kind": is_text, "message": is_text, "place": is_text},
    "watched": {"steps": list_of(_STEP)},
}
"""Required fields of each kind of event; other kinds are not read."""

_ANYWHERE: dict[str, Check] = {
    "time": is_number,
    "moment": is_number,
    "local_world": _is_rank,
    "model": is_text,
    "batch": is_count,
    "forks": is_count,
    "memory": object_of(is_number),
    "boot": is_text,
    "loader_workers": is_count,
    "thread_cores": list_of(is_count),
    "message_delay_seconds": is_amount,
    "compute_threads": is_count,
    "elapsed_seconds": is_amount,
    "busy_seconds": is_amount,
    "worker_seconds": is_amount,
    "worker_delay_seconds": is_amount,
    "threads": object_of(row_of(is_amount, is_amount, is_amount)),
    "buckets": list_of(row_of(is_amount, list_of(is_amount))),
    "ddp": is_object,
    "marks": list_of(list_of(row_of(is_text, is_number, is_number, is_number))),
}
"""Fields with the same meaning in every kind of event."""
