"""What every command shares on its way out: versioned JSON and the line on what to do next."""

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def json_option(function: F) -> F:
    """Add ``--json``, which replaces the table by the same facts as one JSON object."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")(
        function
    )


def emit_json(kind: str, version: int, fields: Mapping[str, Any]) -> None:
    """Print ``fields`` as one JSON object whose ``schema`` names its kind and version.

    Units are part of the names (``step_seconds``, ``gradient_bytes``). Numbers that are not
    finite become null, since JSON has none.
    """
    click.echo(json_text(kind, version, fields))


def json_text(kind: str, version: int, fields: Mapping[str, Any]) -> str:
    """What `emit_json` prints, for commands that write it to a file."""
    document = {"schema": f"paceline/{kind}/{version}", **fields}
    return json.dumps(_finite(document), indent=2, ensure_ascii=False, allow_nan=False)


def next_line(*commands: str) -> None:
    """Say what to type next."""
    click.echo("Next: " + "  ·  ".join(commands))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
