"""Columns of a table of published measurements, and the parser of one line.

An invalid line gives a message about that line; the content of a table never raises an error.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from paceline.naming import nearest
from paceline.validation.published_row import Configuration, PublishedRow


@dataclass(frozen=True, slots=True)
class SchemaColumn:
    """A column of the file, the attribute it becomes, and how its text is read."""

    name: str
    attribute: str
    read: Callable[[str], object]
    required: bool = False


GIB = 2**30
"""Bytes of a GB in ``memory_gb`` and ``predicted_memory_gb``: programs that print the memory of
PyTorch's allocator as GB divide by this."""


class CellError(ValueError):
    """An invalid cell; the message is the reason."""


FAILED = "failed"
"""Status of a job that did not run and has no throughput."""

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_SHOWN = 40
_MOST = 1e18
_LEAST = 1e-12


def _text(cell: str) -> str:
    if "\0" in cell or "\ufffd" in cell:
        raise CellError("not text in UTF-8")
    return cell


def _number(cell: str) -> float:
    if not _NUMBER.fullmatch(cell):
        kind = "a finite number" if cell.lower().lstrip("+-") in ("nan", "inf") else "a number"
        raise CellError(f"'{cell[:_SHOWN]}' is not {kind}")
    number = float(cell)
    if number < 0:
        raise CellError(f"{cell[:_SHOWN]} is below zero")
    if number > _MOST:
        raise CellError(f"{cell[:_SHOWN]} is implausibly large")
    return number


def _positive(cell: str) -> float:
    number = _number(cell)
    if number < _LEAST:
        raise CellError(
            "must be greater than 0" if number == 0 else f"{cell[:_SHOWN]} is almost zero"
        )
    return number


def _count(cell: str) -> int:
    number = _number(cell)
    if number != int(number):
        raise CellError(f"'{cell[:_SHOWN]}' is not an integer")
    return int(number)


def _counted(most: int, least: int = 1) -> Callable[[str], int]:
    """A reader of integers between ``least`` and ``most``."""

    def read(cell: str) -> int:
        number = _count(cell)
        if number < least:
            raise CellError("must be greater than 0")
        if number > most:
            raise CellError(f"{cell[:_SHOWN]} is above the maximum of {most:,}")
        return number

    return read


def _flag(cell: str) -> bool:
    if cell.lower() not in ("true", "false", "1", "0", "yes", "no"):
        raise CellError(f"'{cell[:_SHOWN]}' is neither true nor false")
    return cell.lower() in ("true", "1", "yes")


def _one_of(*values: str) -> Callable[[str], str]:
    """A reader of one of a few values."""

    def read(cell: str) -> str:
        if cell.lower() not in values:
            raise CellError(f"'{cell[:_SHOWN]}' must be one of {', '.join(values)}")
        return cell.lower()

    return read


_DEVICES = _counted(10_000_000)
_DEGREE = _DEVICES
_DEPTH = _counted(2_000)
_WIDTH = _counted(10_000_000)


CONFIGURATION_COLUMNS = (
    SchemaColumn("id", "id", _text, required=True),
    SchemaColumn("family", "family", _text, required=True),
    SchemaColumn("framework", "framework", _text, required=True),
    SchemaColumn("framework_version", "framework_version", _text),
    SchemaColumn("method", "method", _text),
    SchemaColumn("model", "model", _text, required=True),
    SchemaColumn("hidden", "hidden", _WIDTH),
    SchemaColumn("layers", "layers", _DEPTH),
    SchemaColumn("heads", "heads", _WIDTH),
    SchemaColumn("kv_heads", "kv_heads", _WIDTH),
    SchemaColumn("ffn", "feed_forward", _WIDTH),
    SchemaColumn("vocab", "vocabulary", _WIDTH),
    SchemaColumn("tied_embeddings", "tied_embeddings", _flag),
    SchemaColumn("n_params", "n_params", _positive),
    SchemaColumn("task", "task", _text),
    SchemaColumn("data", "data", _text),
    SchemaColumn("precision", "precision", _text, required=True),
    SchemaColumn("device", "device", _text, required=True),
    SchemaColumn("devices_per_node", "devices_per_node", _DEVICES),
    SchemaColumn("nodes", "nodes", _DEVICES),
    SchemaColumn("devices", "devices", _DEVICES, required=True),
    SchemaColumn("dp", "dp", _DEGREE),
    SchemaColumn("tp", "tp", _DEGREE),
    SchemaColumn("pp", "pp", _DEGREE),
    SchemaColumn("cp", "cp", _DEGREE),
    SchemaColumn("ep", "ep", _DEGREE),
    SchemaColumn("zero", "zero", _counted(3, least=0)),
    SchemaColumn("interleave", "interleave", _DEPTH),
    SchemaColumn("micro_batches", "micro_batches", _WIDTH),
    SchemaColumn("micro_batch_size", "micro_batch", _positive),
    SchemaColumn("batch_per_device", "batch_per_replica", _positive),
    SchemaColumn("global_batch", "global_batch", _positive, required=True),
    SchemaColumn("batch_unit", "batch_unit", _text),
    SchemaColumn("seq_len", "sequence", _WIDTH),
    SchemaColumn("recompute", "recompute", _text),
    SchemaColumn("sync", "sync", _text),
    SchemaColumn("overlap", "overlap", _text),
    SchemaColumn("fusion_mb", "fusion_megabytes", _number),
    SchemaColumn("intra_link", "intra_link", _text),
    SchemaColumn("inter_link", "inter_link", _text),
    SchemaColumn("nics_per_node", "nics_per_node", _DEVICES),
    SchemaColumn("extra_server_nodes", "extra_server_nodes", _counted(10_000_000, least=0)),
    SchemaColumn("throughput_unit", "throughput_unit", _text),
    SchemaColumn("scaling", "scaling", _text),
    SchemaColumn("group", "group", _text, required=True),
    SchemaColumn("baseline_id", "baseline_id", _text),
    SchemaColumn("axis", "axis", _text),
    SchemaColumn("tuning", "tuning", _one_of("plain", "reference", "tuned")),
)
"""Columns of a configuration; an empty cell is unknown."""

RESULT_COLUMNS = (
    SchemaColumn("throughput", "throughput", _positive, required=True),
    SchemaColumn("status", "status", _one_of("ok", FAILED)),
    SchemaColumn("memory_gib", "memory_bytes", lambda cell: GIB * _positive(cell)),
    SchemaColumn("memory_gb", "memory_bytes", lambda cell: GIB * _positive(cell)),
    SchemaColumn("spread", "spread", _number),
    SchemaColumn("source", "source", _text),
    SchemaColumn("source_path", "source_path", _text),
    SchemaColumn("notes", "notes", _text),
)
"""Measured values and their source."""

COLUMNS = {column.name: column for column in (*CONFIGURATION_COLUMNS, *RESULT_COLUMNS)}
REQUIRED = tuple(name for name, column in COLUMNS.items() if column.required)
_IGNORED = frozenset({"params_basis", "step_s"})
_INTERLEAVING_NOTE = re.compile(r"\binterleaving (\d{1,3})\b")


def missing_columns(header: list[str]) -> list[str]:
    """Required columns that are missing in ``header``."""
    return [name for name in REQUIRED if name not in header]


def header_remarks(header: list[str]) -> list[str]:
    """Remarks on missing and unknown columns of a file."""
    absent = [name for name in COLUMNS if name not in header and name not in REQUIRED]
    unknown = [name for name in header if name not in COLUMNS and name not in _IGNORED]
    remarks = []
    if absent:
        remarks.append(f"missing columns, treated as unknown: {', '.join(absent)}")
    for name in unknown:
        close = nearest(name, COLUMNS, count=1)
        suggestion = f" (did you mean {close[0]}?)" if close and close[0] in absent else ""
        remarks.append(f"column '{name}' is unknown and ignored{suggestion}")
    return remarks


def read_cells(cells: Mapping[str, str]) -> PublishedRow | str:
    """The measurement of one line, or the reason why the line is invalid."""
    values: dict[str, object] = {}
    for name, column in COLUMNS.items():
        text = (cells.get(name) or "").strip()
        if not text:
            if column.required and not (name == "throughput" and _has_failed(cells)):
                return f"column '{name}' is empty"
            continue
        try:
            values[column.attribute] = column.read(text)
        except CellError as problem:
            return f"column '{name}': {problem}"
    noted = _INTERLEAVING_NOTE.search(str(values.get("notes", "")))
    if noted and "interleave" not in values:
        values["interleave"] = max(1, int(noted[1]))
    problem_text = _complete_nodes(values) or _inconsistency(values)
    if problem_text:
        return problem_text
    results = {
        column.attribute: values.pop(column.attribute)
        for column in RESULT_COLUMNS
        if column.attribute in values
    }
    configuration = Configuration(**values)  # type: ignore[arg-type]
    return PublishedRow(configuration, **results)  # type: ignore[arg-type]


def _has_failed(cells: Mapping[str, str]) -> bool:
    return (cells.get("status") or "").strip().lower() == FAILED


def _complete_nodes(values: dict[str, object]) -> str:
    """Fill in whichever of nodes and devices per node follows from the other."""
    devices, nodes, per_node = (
        values.get(name) for name in ("devices", "nodes", "devices_per_node")
    )
    assert isinstance(devices, int)
    if nodes is None and per_node is None:
        if devices > 1:
            return "neither 'nodes' nor 'devices_per_node' is given for several devices"
        nodes = per_node = 1
    elif nodes is None:
        assert isinstance(per_node, int)
        nodes = max(1, devices // per_node)
    elif per_node is None:
        assert isinstance(nodes, int)
        per_node = max(1, devices // nodes)
    values["nodes"], values["devices_per_node"] = nodes, per_node
    return ""


def _inconsistency(values: Mapping[str, object]) -> str:
    devices, nodes, per_node = (values[n] for n in ("devices", "nodes", "devices_per_node"))
    assert isinstance(devices, int) and isinstance(nodes, int) and isinstance(per_node, int)
    if nodes * per_node != devices:
        return f"nodes x devices_per_node = {nodes} x {per_node}, but devices = {devices}"
    product = 1
    for name in ("dp", "tp", "pp", "cp"):
        degree = values.get(name)
        if not isinstance(degree, int):
            return ""
        product *= degree
    if product != devices:
        return f"dp x tp x pp x cp = {product}, but {devices} devices"
    return ""
