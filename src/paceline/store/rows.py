"""Converts launches to rows of the store and back, with validation."""

import json
from collections.abc import Callable
from dataclasses import asdict
from functools import lru_cache
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
    optional,
    parsed_json,
    with_fields,
)
from paceline.step import Phase
from paceline.step.serialise import step_from_json, step_to_json
from paceline.store.launch import Launch, LayerTiming, Outcome, RankSteps, Status

Row = tuple[Any, ...]
OWNER_ENDED = "the process that ran it was ended"


def _is_size(value: Any) -> bool:
    return is_count(value) and value > 0


CHECKS: dict[str, Check] = {
    "id": is_text,
    "study": is_text,
    "created_at": is_text,
    "framework": is_text,
    "model": is_text,
    "world_size": _is_size,
    "nodes": _is_size,
    "batch_per_rank": _is_size,
    "precision": is_text,
    "instrument": is_text,
    "synchronised": is_count,
    "warmup_steps": is_count,
    "provenance": is_text,
    "owner": is_text,
    "job": is_text,
    "environment": is_text,
}
"""Columns of the table ``launches``."""

COLUMNS = list(CHECKS)

_GRAPH = "CASE WHEN json_valid(job) THEN json_extract(job, '$.graph') END"
_JOB = "CASE WHEN json_valid(job) THEN json_remove(job, '$.graph') ELSE job END"
READ = ", ".join(_JOB if column == "job" else f"launches.{column}" for column in COLUMNS)
READ += f", {_GRAPH}, status, ended_at, reason, result"
"""Columns to read; the graph is separate, since the launches of a network share it."""

_JOB_FIELDS = with_fields(
    {},
    {
        "position": is_count,
        "threads": is_count,
        "command": list_of(is_text),
        "batch_told": optional(is_count),
        "global_batch": optional(is_amount),
        "sequence": optional(is_count),
        "bucket_bytes": optional(is_amount),
        "optimiser": is_object,
        "factors": is_object,
        "replicate": is_count,
    },
)
_TASK = with_fields(
    {
        "name": is_text,
        "phase": is_text,
        "resource": is_text,
        "start": is_number,
        "seconds": is_number,
        "after": list_of(is_count),
    },
    {
        "rank": is_count,
        "layer": is_text,
        "size_bytes": is_number,
        "flops": is_number,
        "group": is_text,
    },
)
_TIMELINE = with_fields(
    {"tasks": list_of(_TASK), "origin": is_text, "label": is_text, "metadata": is_object}
)


def _is_profile(value: Any) -> bool:
    """Whether a value has the fields of `StepProfile.to_json`; older ones have no pauses."""
    return _PROFILE(value) and value.keys() <= _PROFILE_FIELDS.keys() | {"pauses"}


def _has_phases(value: Any) -> bool:
    return object_of(is_number)(value) and all(phase in list(Phase) for phase in value)


_MESSAGE = with_fields(
    {"size_bytes": is_number, "ready_seconds": is_number, "seconds": is_number},
    {"operation": is_text},
)


_PROFILE_FIELDS: dict[str, Check] = {
    "steps": is_count,
    "step_seconds": is_number,
    "slowest_seconds": is_number,
    "exposed_seconds": is_number,
    "hidden_seconds": is_number,
    "backward_end_seconds": is_number,
    "ranks": list_of(
        with_fields(
            {"rank": is_count, "phases": _has_phases, "last_share": is_number},
            {"deviation_seconds": is_number},
        )
    ),
    "messages": list_of(_MESSAGE),
}


def _are_pauses(value: Any) -> bool:
    fields = {"rank", "count", "steps", "every", "each_seconds"}
    return (
        object_of(is_number)(value)
        and value.keys() == fields
        and min(value["count"], value["steps"]) > 0
    )


_PROFILE = with_fields(_PROFILE_FIELDS, {"pauses": optional(_are_pauses)})
_FACTS = with_fields(
    {},
    {
        "seconds": is_amount,
        "load_before": optional(is_number),
        "load_after": optional(is_number),
        "versions": is_object,
        "exit_codes": list_of(optional(is_number)),
        "parts": object_of(list_of(is_amount)),
        "notes": list_of(is_text),
        "memory": list_of(object_of(is_number)),
        "phases": object_of(is_amount),
        "cores": list_of(list_of(is_count)),
        "thread_cores": list_of(list_of(is_count)),
        "other_busy_cores": optional(is_number),
        "samples": list_of(is_amount),
        "message_delay_seconds": list_of(is_amount),
        "loader_workers": list_of(is_count),
        "collection_seconds": is_amount,
        "synchronised_backwards": is_count,
        "steadiness": is_text,
        "profile": optional(_is_profile),
    },
)
_ENVIRONMENT = with_fields(
    {},
    {
        "load_average": is_number,
        "cores": optional(is_count),
        "memory_bytes": is_amount,
        "cpu_model": is_text,
        "governor": is_text,
        "container": is_text,
        "scheduling": is_text,
        "hosts": list_of(is_text),
        "variables": object_of(is_text),
    },
)
_RANK = with_fields(
    {
        "rank": is_count,
        "wall_seconds": list_of(is_amount),
        "cpu_seconds": list_of(is_amount),
        "losses": list_of(is_loss),
    },
    {"delay_seconds": list_of(is_amount)},
)
is_layer_timing = with_fields(
    {
        "name": is_text,
        "forward_seconds": is_amount,
        "backward_seconds": is_amount,
        "gradient_bytes": is_amount,
    }
)
_RESULT = with_fields(
    {
        "ranks": list_of(_RANK),
        "layers": list_of(is_layer_timing),
        "timeline": optional(_TIMELINE),
        "facts": _FACTS,
    }
)


is_job = with_fields(
    {"model": is_text, "graph": is_object, "batch_per_rank": _is_size},
    {
        "framework": is_text,
        "world_size": _is_size,
        "nodes": _is_size,
        "precision": is_text,
        "optimiser": with_fields(
            {},
            {
                "name": is_text,
                "learning_rate": is_number,
                "momentum": is_number,
                "weight_decay": is_number,
            },
        ),
        "steps": _is_size,
        "warmup_steps": is_count,
        "instrument": is_text,
        "bucket_bytes": optional(is_amount),
        "threads": _is_size,
        "device": is_text,
        "seed": is_number,
        "sequence": optional(is_count),
        "distinct_batches": _is_size,
        "data": is_object,
        "launcher": is_text,
        "factors": is_object,
        "hosts": list_of(is_text),
        "launcher_options": list_of(is_text),
        "emulated": optional(is_object),
        "epochs": is_count,
    },
)
"""A job that can be run, as in a design."""

is_design = with_fields(
    {"jobs": list_of(is_job), "order": list_of(is_count), "seed": is_number},
    {
        "parity": optional(is_object),
        "stopping": optional(with_fields({"relative_half_width": is_number, "most": is_count})),
        "most_seconds": optional(is_amount),
        "launch_seconds": optional(is_amount),
        "accuracy": optional(object_of(optional(is_number))),
        "node_price": optional(is_amount),
        "ended": optional(is_object),
        "order_kind": is_text,
        "block_by": is_text,
    },
)
"""The design of a study, in a store or in the directory of a prepared one."""


class DamagedRowError(ValueError):
    """A row that is not a valid launch."""


def row_of(launch: Launch, owner: str) -> Row:
    """Row of a launch of ``owner``."""
    written = {
        "synchronised": int(launch.synchronised),
        "owner": owner,
        "job": json.dumps(launch.job),
        "environment": json.dumps(launch.environment),
    }
    return tuple(
        written[column] if column in written else getattr(launch, column) for column in COLUMNS
    )


def outcome_row(launch_id: str, outcome: Outcome) -> Row:
    """Row of the outcome of a launch."""
    result = {
        "ranks": [asdict(rank) for rank in outcome.ranks],
        "layers": [asdict(layer) for layer in outcome.layers],
        "timeline": None if outcome.timeline is None else step_to_json(outcome.timeline),
        "facts": outcome.facts,
    }
    return (
        launch_id,
        str(outcome.status),
        outcome.ended_at,
        outcome.reason,
        json.dumps(result),
    )


def launch_of(row: Row, is_alive: Callable[[str], bool]) -> Launch:
    """Launch of a row of `READ`; `DamagedRowError` if it is invalid."""
    fields = dict(zip(COLUMNS, row, strict=False))
    for column, check in CHECKS.items():
        if not check(fields[column]):
            raise DamagedRowError(f"its {column.replace('_', ' ')} is {_truncated(fields[column])}")
    owner = fields.pop("owner")
    graph, status, ended_at, reason, result = row[len(COLUMNS) :]
    if status is None:
        alive = is_alive(owner)
        running = Status.RUNNING if alive else Status.INTERRUPTED
        outcome = Outcome(running, "", "" if alive else OWNER_ENDED)
    else:
        outcome = _outcome(status, ended_at, reason, result)
    job = _document(fields["job"], "job", _JOB_FIELDS)
    if graph is not None:
        job["graph"] = _graph(graph)
    read = {
        "synchronised": bool(fields["synchronised"]),
        "job": job,
        "environment": _document(fields["environment"], "environment", _ENVIRONMENT),
    }
    return Launch(**{**fields, **read}, outcome=outcome)


def _outcome(status: Any, ended_at: Any, reason: Any, text: Any) -> Outcome:
    if status not in list(Status) or not (is_text(ended_at) and is_text(reason)):
        raise DamagedRowError(f"its status is {_truncated(status)}")
    result = _document(text, "result", _RESULT)
    if status == Status.FINISHED and len({len(one["wall_seconds"]) for one in result["ranks"]}) > 1:
        raise DamagedRowError("its ranks finished different numbers of steps")
    try:
        timeline = None if result["timeline"] is None else step_from_json(result["timeline"])
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DamagedRowError(f"its timeline is invalid ({error!r})") from None
    return Outcome(
        status=Status(status),
        ended_at=ended_at,
        reason=reason,
        ranks=tuple(
            RankSteps(
                item["rank"],
                tuple(item["wall_seconds"]),
                tuple(item["cpu_seconds"]),
                tuple(item["losses"]),
                tuple(item.get("delay_seconds", ())),
            )
            for item in result["ranks"]
        ),
        layers=tuple(
            LayerTiming(
                item["name"],
                item["forward_seconds"],
                item["backward_seconds"],
                item["gradient_bytes"],
            )
            for item in result["layers"]
        ),
        timeline=timeline,
        facts=result["facts"],
    )


def _document(text: Any, name: str, check: Check) -> dict[str, Any]:
    try:
        document = parsed_json(text)
    except (TypeError, ValueError) as error:
        raise DamagedRowError(f"its {name} is not valid JSON ({error})") from None
    if not (is_object(document) and check(document)):
        raise DamagedRowError(f"its {name} does not match the schema")
    return dict(document)


@lru_cache(maxsize=64)
def _graph(text: str) -> Any:
    """Parse a graph; launches with the same graph share the object, which must not be changed."""
    try:
        return parsed_json(text)
    except (TypeError, ValueError):
        raise DamagedRowError("its graph is not valid JSON") from None


def _truncated(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
