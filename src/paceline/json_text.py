"""JSON documents of Paceline: a schema with kind and version, and units in field names."""

import json
import math
import re
from collections.abc import Mapping
from typing import Any

CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)
"""Control characters, line separators and marks of bidirectional text."""


def json_text(kind: str, version: int, fields: Mapping[str, Any]) -> str:
    """``fields`` as JSON text whose ``schema`` names its kind and version.

    Infinite numbers and NaN become null, because JSON has neither.
    """
    document = {"schema": f"paceline/{kind}/{version}", **fields}
    text = json.dumps(_finite(document), indent=2, ensure_ascii=False, allow_nan=False)
    return CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
