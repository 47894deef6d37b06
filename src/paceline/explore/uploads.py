"""Models that a browser gives to the page: read as data, kept in memory, never executed."""

import json
import tempfile
from collections import OrderedDict
from pathlib import Path

from paceline.errors import InputError
from paceline.explore.state import UPLOADED
from paceline.json_checks import parsed_json
from paceline.workload.graph import Graph

LARGEST_UPLOAD = 64_000_000
MOST_UPLOADS = 20


class Uploads(OrderedDict[str, Graph]):
    """Graphs by the name under which the page knows them; the oldest go first."""

    def add(self, name: str, content: bytes) -> str:
        """Read a file of a browser (config.json, a captured graph, ONNX); its name here."""
        if len(content) > LARGEST_UPLOAD:
            raise InputError(
                f"the file has more than {LARGEST_UPLOAD // 1_000_000} MB",
                "capture it on the command line: paceline inspect FILE",
            )
        graph = _graph(Path(name).suffix.lower(), content)
        key = f"{UPLOADED}{len(self) + 1}:{graph.name}"[:80]
        self[key] = graph
        while len(self) > MOST_UPLOADS:
            self.popitem(last=False)
        return key


def _graph(suffix: str, content: bytes) -> Graph:
    if suffix == ".json":
        try:
            document = parsed_json(content.decode("utf-8"))
        except (ValueError, UnicodeDecodeError) as error:
            raise InputError(
                f"it is not JSON that can be read ({error})", "give a .json file"
            ) from None
        if isinstance(document, dict) and "nodes" in document and "inputs" in document:
            return Graph.from_json(document)
        return _from_file("config.json", json.dumps(document).encode())
    if suffix == ".onnx":
        return _from_file("model.onnx", content)
    raise InputError(
        "only config.json, captured graphs (.json) and .onnx can be given here",
        "Python files are captured on the command line: paceline inspect FILE.py:FUNCTION",
    )


def _from_file(name: str, content: bytes) -> Graph:
    from paceline.workload.capture.user_model import load_user_model

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        return load_user_model(str(path))
