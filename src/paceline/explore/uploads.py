"""Files uploaded by a browser: read as data, kept in memory, never executed.

A model, a cluster, or evidence: layer times, an all-reduce curve, or a log of a training run.
"""

import asyncio
import re
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from paceline.errors import InputError, PacelineError
from paceline.explore.state import UPLOADED
from paceline.json_checks import parsed_json
from paceline.workload.graph import Graph

LARGEST_UPLOAD = 16_000_000
LARGEST_JSON = 4_000_000
"""Limit of a JSON file in bytes: parsed, it takes about 30 times that; graphs have 0.2 MB."""
MOST_UPLOADS = 20


def largest_upload(name: str) -> int:
    """Limit of a file in bytes, by its suffix."""
    return LARGEST_JSON if name.lower().endswith(".json") else LARGEST_UPLOAD


@dataclass(frozen=True)
class Upload:
    """The content of a file, the option that it is a value of, and the file's name."""

    option: str
    value: Any
    name: str


class Uploads(OrderedDict[str, Upload]):
    """Files by key; the oldest are dropped first."""

    def __init__(self) -> None:
        super().__init__()
        self.reading = asyncio.Lock()

    def add(self, name: str, content: bytes) -> str:
        """Read an uploaded file and return its key.

        The key contains a hash of the content, so it never stands for two files.
        """
        most = largest_upload(name)
        if len(content) > most:
            raise InputError(
                f"the file is larger than {most // 1_000_000} MB",
                "read it on the command line: paceline inspect FILE or paceline import FILE",
            )
        option, value = _read(name, content)
        key = f"{UPLOADED}{sha256(content).hexdigest()[:12]}:{Path(name).name}"[:80]
        self[key] = Upload(option, value, Path(name).name)
        self.move_to_end(key)
        while len(self) > MOST_UPLOADS:
            self.popitem(last=False)
        return key


def _read(name: str, content: bytes) -> tuple[str, Any]:
    """The option and value of a file, by its suffix and content."""
    suffix = Path(name).suffix.lower()
    if suffix == ".json":
        return _json(name, content)
    if suffix not in _READERS:
        raise InputError(
            "unsupported file: expected config.json, a captured graph (.json), .onnx, a cluster "
            "(.toml), layer times (.csv) or a log (.log, .txt)",
            "capture Python files on the command line: paceline inspect FILE.py:FUNCTION",
        )
    kept = re.sub(r"[^\w-]", "_", Path(name).stem)[:60] + suffix
    return _from_file(kept, name, content, _READERS[suffix])


def _json(name: str, content: bytes) -> tuple[str, Any]:
    try:
        document = parsed_json(content.decode("utf-8"))
    except (ValueError, UnicodeDecodeError) as error:
        raise InputError(f"the file is not valid JSON ({error})", "upload a .json file") from None
    if isinstance(document, dict) and "nodes" in document and "inputs" in document:
        return "model", Graph.from_json(document)
    if isinstance(document, dict) and "points" in document and "ranks" in document:
        return _from_file("curve.json", name, content, _curve)
    return _from_file("config.json", name, content, _model)


def _from_file(
    kept: str, name: str, content: bytes, read: Callable[[Path], tuple[str, Any]]
) -> tuple[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / kept
        path.write_bytes(content)
        try:
            return read(path)
        except PacelineError as error:  # the browser's name of the file, not the server's path
            message, hint = (text.replace(str(path), name) for text in (error.message, error.hint))
            raise InputError(message, hint) from None


def _model(path: Path) -> tuple[str, Any]:
    from paceline.workload.capture.user_model import load_user_model

    return "model", load_user_model(str(path))


def _cluster(path: Path) -> tuple[str, Any]:
    from paceline.hardware.catalogue import cluster

    return "cluster", cluster(str(path))


def _curve(path: Path) -> tuple[str, Any]:
    from paceline.measurement.probe.allreduce_curves import read_curve

    return "allreduce_curve", read_curve(path)


def _layers(path: Path) -> tuple[str, Any]:
    from paceline.importers.traces import read_layer_trace

    return "trace", read_layer_trace(path)


def _log(path: Path) -> tuple[str, Any]:
    """An all-reduce curve from a log of nccl-tests or OSU, otherwise a measured launch."""
    from paceline.importers.import_launches import UserFacts, launch_of_log
    from paceline.importers.logs import read_log

    log = read_log(path)
    if log.collectives and not log.steps:
        return _curve(path)
    return "log", launch_of_log(log, path, "uploaded", UserFacts())


_READERS: Mapping[str, Callable[[Path], tuple[str, Any]]] = {
    ".onnx": _model,
    ".toml": _cluster,
    ".csv": _layers,
    ".log": _log,
    ".txt": _log,
}
