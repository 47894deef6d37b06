"""All-reduce curves: seconds by message size among a number of ranks, probed or from logs."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from paceline.errors import InputError
from paceline.hardware.machine_profile import CollectivePoint
from paceline.json_checks import is_amount, is_count, is_text, list_of, parsed_json, with_fields
from paceline.user_files import read_text

SCHEMA = "paceline/curve/1"
MOST_BYTES = 10**7

_POINT = with_fields(
    {
        "size_bytes": is_amount,
        "seconds": is_amount,
        "lower_quartile_seconds": is_amount,
        "upper_quartile_seconds": is_amount,
    }
)
_CURVE = with_fields(
    {"ranks": is_count, "nodes": is_count, "source": is_text, "points": list_of(_POINT)}
)


@dataclass(frozen=True)
class CollectiveCurve:
    """Seconds of one all-reduce by bytes, among ``ranks`` on ``nodes`` machines (0: unknown).

    ``load_average`` is that of this machine before the measurement; None if unknown.
    """

    ranks: int
    nodes: int
    points: tuple[CollectivePoint, ...]
    source: str
    measured_at: str = ""
    load_average: float | None = None

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self)}

    def bus_bandwidth(self, point: CollectivePoint) -> float | None:
        """Bus bandwidth (bytes/s) as nccl-tests define it; None if ranks are unknown."""
        if self.ranks < 2:
            return None
        return 2.0 * (self.ranks - 1) / self.ranks * point.size_bytes / point.seconds


def read_curve(path: Path) -> CollectiveCurve:
    """Read a curve from a file of 'paceline calibrate --out' or a log of nccl-tests or OSU."""
    text = read_text(path, MOST_BYTES, "a curve")
    return _of_json(path, text) if text.lstrip().startswith("{") else _of_log(path)


def _of_json(path: Path, text: str) -> CollectiveCurve:
    try:
        document = parsed_json(text)
    except ValueError as error:
        raise InputError(f"{path} is not valid JSON: {error}", _HINT) from error
    if document.get("schema") != SCHEMA or not _CURVE(document) or not document["points"]:
        raise InputError(f"{path} does not match the schema {SCHEMA}", _HINT)
    points = tuple(
        CollectivePoint(**{key: float(point[key]) for key in CollectivePoint.__annotations__})
        for point in document["points"]
    )
    return CollectiveCurve(
        document["ranks"],
        document["nodes"],
        points,
        document["source"],
        str(document.get("measured_at", "")),
        document.get("load_average"),
    )


def _of_log(path: Path) -> CollectiveCurve:
    from paceline.importers.logs import read_log

    log = read_log(path)
    points = [each for each in log.collectives if each.operation == "all_reduce"]
    if not points:
        there = sorted({each.operation for each in log.collectives})
        content = f"it times {', '.join(there)}" if there else f"{log.program} times no collectives"
        raise InputError(f"{path} has no all-reduce: {content}", _HINT)
    return CollectiveCurve(
        log.ranks or 0,
        log.nodes or 0,
        tuple(
            CollectivePoint(each.size_bytes, each.seconds, each.seconds, each.seconds)
            for each in sorted(points, key=lambda each: each.size_bytes)
            if each.seconds > 0
        ),
        f"{log.program}, {path.name}",
    )


_HINT = (
    "give a file written by 'paceline calibrate --out', or the output of all_reduce_perf "
    "or osu_allreduce"
)
