"""Tidy tables out of the store: one row per launch, per step, or per layer."""

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from paceline.errors import InputError, MissingExtraError
from paceline.store.launch import Launch

Row = dict[str, Any]


def launch_rows(launches: Sequence[Launch]) -> Iterator[Row]:
    """One row per launch: what was asked, how it ended, sums over its counted steps (seconds)."""
    for launch in launches:
        skip = launch.warmup_steps
        ranks = [rank.wall_seconds[skip:] for rank in launch.outcome.ranks]
        slowest = [max(step) for step in zip(*ranks, strict=False)]
        yield {
            **launch_keys(launch),
            "status": str(launch.status),
            "reason": launch.outcome.reason,
            "counted_steps": len(slowest),
            "counted_seconds": sum(slowest) if slowest else None,
            "throughput_samples_per_second": (
                launch.samples_per_step * len(slowest) / sum(slowest) if slowest else None
            ),
            "load_before": launch.outcome.facts.get("load_before"),
            "load_after": launch.outcome.facts.get("load_after"),
            "cpu_model": launch.environment.get("cpu_model"),
            "cores": launch.environment.get("cores"),
            "git_commit": launch.environment.get("git_commit"),
        }


def step_rows(launches: Sequence[Launch]) -> Iterator[Row]:
    """One row per launch, rank and step, warm-up marked."""
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
                    "loss": _at(rank.losses, index),
                }


def layer_rows(launches: Sequence[Launch]) -> Iterator[Row]:
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


TABLES: dict[str, Callable[[Sequence[Launch]], Iterator[Row]]] = {
    "launches": launch_rows,
    "steps": step_rows,
    "layers": layer_rows,
}


def to_csv(rows: Sequence[Row]) -> str:
    """Rows as CSV with a header; text that a spreadsheet would take for a formula is quoted."""
    if not rows:
        raise InputError("there is nothing to export", "'paceline list' shows what is recorded")
    out = io.StringIO()
    writer = csv.DictWriter(out, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: _harmless(value) for key, value in row.items()})
    return out.getvalue()


def to_parquet(rows: Sequence[Row]) -> bytes:
    """Rows as a Parquet file."""
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise MissingExtraError(
            "Parquet needs the package 'pyarrow'", "pip install 'paceline[parquet]', or use .csv"
        ) from None
    if not rows:
        raise InputError("there is nothing to export", "'paceline list' shows what is recorded")
    out = io.BytesIO()
    parquet.write_table(arrow.Table.from_pylist(list(rows)), out)
    return out.getvalue()


def launch_keys(launch: Launch) -> Row:
    """What a launch is of, as columns of every table."""
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


def _harmless(value: Any) -> Any:
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@"):
        return "'" + value
    return value
