"""Tidy tables of the store: a row per launch, step, phase of a rank, or layer.

``docs/reference/tables.md`` describes each column.
"""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import IO, Any

from paceline.errors import InputError, MissingExtraError
from paceline.store.launch import Launch

Row = dict[str, Any]
ROWS_AT_ONCE = 10_000
FORMULA_SIGNS = tuple("=+-@\t\n\uff1d\uff0b\uff0d\uff20")

_TEXTS = "launch study created_at provenance framework model precision instrument status reason"
_TEXTS += " cpu_model git_commit name phase steadiness kernel governor"
_WHOLE = "nodes processes batch_per_process counted_steps warmup_steps threads seed cores rank"
_WHOLE += " step layer replicate"
KINDS: dict[str, type] = {
    **dict.fromkeys(_TEXTS.split(), str),
    **dict.fromkeys(_WHOLE.split(), int),
    **dict.fromkeys(("synchronised", "warmup"), bool),
}
"""Types of columns; all others are floating-point numbers."""

FACTOR = "factor_"
"""Prefix of the columns with levels of factors, as text."""


def launch_rows(launches: Iterable[Launch]) -> Iterator[Row]:
    """One row per launch: settings, outcome, and sums over its counted steps (seconds)."""
    for launch in launches:
        skip = launch.warmup_steps
        steps = min((len(rank.wall_seconds[skip:]) for rank in launch.outcome.ranks), default=0)
        yield {
            **launch_keys(launch),
            "status": str(launch.status),
            "reason": launch.outcome.reason,
            "replicate": launch.job.get("replicate"),
            "threads": launch.job.get("threads"),
            "seed": launch.job.get("seed"),
            "warmup_steps": launch.warmup_steps,
            "steadiness": launch.outcome.facts.get("steadiness"),
            "launch_seconds": launch.outcome.facts.get("seconds"),
            "counted_steps": steps,
            "counted_seconds": launch.counted_seconds if steps else None,
            "throughput_samples_per_second": (
                launch.samples_per_step * steps / launch.counted_seconds if steps else None
            ),
            "load_before": launch.outcome.facts.get("load_before"),
            "load_after": launch.outcome.facts.get("load_after"),
            "cpu_model": launch.environment.get("cpu_model"),
            "cores": launch.environment.get("cores"),
            "kernel": launch.environment.get("system"),
            "governor": launch.environment.get("governor"),
            "git_commit": launch.environment.get("git_commit"),
        }


def step_rows(launches: Iterable[Launch]) -> Iterator[Row]:
    """One row per launch, rank and step, with a column for warm-up."""
    for launch in launches:
        for rank in launch.outcome.ranks:
            for index, wall in enumerate(rank.wall_seconds):
                yield {
                    **launch_keys(launch),
                    "rank": rank.rank,
                    "step": index,
                    "warmup": index < launch.warmup_steps,
                    "wall_seconds": wall,
                    "cpu_seconds": _at(rank.cpu_seconds, index),
                    "delay_seconds": _at(rank.delay_seconds, index),
                    "loss": _at(rank.losses, index),
                }


def phase_rows(launches: Iterable[Launch]) -> Iterator[Row]:
    """One row per launch, rank and phase: mean seconds of the phase in a step, if timed."""
    for launch in launches:
        profile = launch.outcome.facts.get("profile") or {}
        for rank in profile.get("ranks", ()):
            for phase, seconds in rank["phases"].items():
                yield {
                    **launch_keys(launch),
                    "rank": rank["rank"],
                    "phase": phase,
                    "phase_seconds": seconds,
                }


def layer_rows(launches: Iterable[Launch]) -> Iterator[Row]:
    """One row per launch and layer: the layer-wise trace."""
    for launch in launches:
        for index, layer in enumerate(launch.outcome.layers):
            yield {
                **launch_keys(launch),
                "layer": index,
                "name": layer.name,
                "forward_seconds": layer.forward_seconds,
                "backward_seconds": layer.backward_seconds,
                "gradient_bytes": layer.gradient_bytes,
            }


TABLES: dict[str, Callable[[Iterable[Launch]], Iterator[Row]]] = {
    "launches": launch_rows,
    "steps": step_rows,
    "phases": phase_rows,
    "layers": layer_rows,
}


def to_csv(rows: Iterable[Row], file: IO[bytes]) -> int:
    """Write rows as CSV with a header, one by one; return their number.

    Text that a spreadsheet would interpret as a formula is quoted.
    """
    first, others = _begun(rows)
    text = io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline="")
    writer = csv.DictWriter(text, fieldnames=list(first), lineterminator="\n")
    writer.writeheader()
    count = 0
    for row in chain((first,), others):
        writer.writerow({key: _quote_formula(value) for key, value in row.items()})
        count += 1
    text.flush()
    text.detach()
    return count


def to_parquet(rows: Iterable[Row], file: IO[bytes]) -> int:
    """Write rows as a Parquet file in batches; return their number."""
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise MissingExtraError(
            "Parquet needs the package 'pyarrow'", "pip install 'paceline[parquet]', or use .csv"
        ) from None
    first, others = _begun(rows)
    kinds = {str: arrow.string(), bool: arrow.bool_(), int: arrow.int64(), float: arrow.float64()}
    schema = arrow.schema([(name, kinds[kind_of(name)]) for name in first])
    count = 0
    with parquet.ParquetWriter(file, schema) as writer:
        every = chain((first,), others)
        while some := list(islice(every, ROWS_AT_ONCE)):
            writer.write_table(arrow.Table.from_pylist(some, schema=schema))
            count += len(some)
    return count


def kind_of(column: str) -> type:
    return str if column.startswith(FACTOR) else KINDS.get(column, float)


FORMATS: dict[str, Callable[[Iterable[Row], IO[bytes]], int]] = {
    ".csv": to_csv,
    ".parquet": to_parquet,
}
"""Writers by file extension."""


def tidy_rows(table: str, launches: Iterable[Launch], factors: Sequence[str] = ()) -> Iterator[Row]:
    """Rows of a table, each with the levels of ``factors`` as text."""
    for launch in launches:
        levels = launch.job.get("factors", {})
        named = {f"{FACTOR}{name}": _level(levels.get(name)) for name in factors}
        for row in TABLES[table]([launch]):
            yield {**row, **named}


def _level(level: Any) -> str | None:
    return None if level is None else str(level)


def _begun(rows: Iterable[Row]) -> tuple[Row, Iterator[Row]]:
    """First row, which names the columns, and the others."""
    others = iter(rows)
    first = next(others, None)
    if first is None:
        raise InputError(
            "nothing to export", "list the recorded launches with 'paceline study list --launches'"
        )
    return first, others


def launch_keys(launch: Launch) -> Row:
    """Columns of a launch that every table has."""
    return {
        "launch": launch.id,
        "study": launch.study,
        "created_at": launch.created_at,
        "provenance": launch.provenance,
        "framework": launch.framework,
        "model": launch.model,
        "nodes": launch.nodes,
        "processes": launch.world_size,
        "batch_per_process": launch.batch_per_rank,
        "precision": launch.precision,
        "instrument": launch.instrument,
        "synchronised": launch.synchronised,
    }


def _at(values: Sequence[float], index: int) -> float | None:
    return values[index] if index < len(values) else None


def _quote_formula(value: Any) -> Any:
    """Quote text that begins like a formula, also after white space."""
    if not isinstance(value, str):
        return value
    one_line = value.replace("\r\n", "\n").replace("\r", "\n")
    return f"'{one_line}" if one_line[:1] in FORMULA_SIGNS else one_line
