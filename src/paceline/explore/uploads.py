"""Models uploaded by a browser: read as data, kept in memory, never executed."""

import asyncio
import tempfile
from collections import OrderedDict
from hashlib import sha256
from pathlib import Path

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


class Uploads(OrderedDict[str, Graph]):
    """Graphs by name on the page; the oldest are dropped first."""

    def __init__(self) -> None:
        super().__init__()
        self.reading = asyncio.Lock()

    def add(self, name: str, content: bytes) -> str:
        """Read an uploaded file (config.json, a captured graph, ONNX) and return its name.

        The name contains a hash of the content, so it never stands for two models.
        """
        most = largest_upload(name)
        if len(content) > most:
            raise InputError(
                f"the file is larger than {most // 1_000_000} MB",
                "capture it on the command line: paceline inspect FILE",
            )
        graph = _graph(name, content)
        key = f"{UPLOADED}{sha256(content).hexdigest()[:12]}:{graph.name}"[:80]
        self[key] = graph
        self.move_to_end(key)
        while len(self) > MOST_UPLOADS:
            self.popitem(last=False)
        return key


def _graph(name: str, content: bytes) -> Graph:
    suffix = Path(name).suffix.lower()
    if suffix == ".json":
        try:
            document = parsed_json(content.decode("utf-8"))
        except (ValueError, UnicodeDecodeError) as error:
            raise InputError(
                f"the file is not valid JSON ({error})", "upload a .json file"
            ) from None
        if isinstance(document, dict) and "nodes" in document and "inputs" in document:
            return Graph.from_json(document)
        return _from_file("config.json", name, content)
    if suffix == ".onnx":
        return _from_file("model.onnx", name, content)
    raise InputError(
        "unsupported file: expected config.json, a captured graph (.json) or .onnx",
        "capture Python files on the command line: paceline inspect FILE.py:FUNCTION",
    )


def _from_file(kept: str, name: str, content: bytes) -> Graph:
    from paceline.workload.capture.user_model import load_user_model

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / kept
        path.write_bytes(content)
        try:
            return load_user_model(str(path))
        except PacelineError as error:  # the browser's name of the file, not the server's path
            message, hint = (text.replace(str(path), name) for text in (error.message, error.hint))
            raise InputError(message, hint) from None
