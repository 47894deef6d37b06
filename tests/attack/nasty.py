"""Ways in which values come to harm; deterministic for a seed."""

import copy
import json
import random
import re
from typing import Any

from mutations import MUTATIONS

HANG_SECONDS = 900.0
"""Time limit of a command: far above its duration on a machine with forty busy programs."""

DEEP = "[" * 100_000
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 3, 10**6, 10**18, 10**400, -(10**400), 1e308, 1e-308, -0.5, 2.5,
    float("nan"), float("inf"), float("-inf"), "", "x", "1", "²", "\x00", "\x1b[31m", "=1+1",
    "a" * 10_000, "../../etc", "10gbit", [], {}, [None], [[]], [0] * 1000, {"x": {}}, [-1, "y"],
)  # fmt: skip
"""What a field may hold that nobody meant."""

TEXTS = (
    "5", "0", "-1", "1e400", "nan", "inf", "true", "[]", "{}", '""', "'x'", "9" * 5000, '"10gbit"',
    "[1, 2]", "{ fp32 = 5 }", "2026-11-17", "0x10", '"' + "a" * 5000 + '"', "[" * 500 + "]" * 500,
    "10.5", '"-3 GB"', '"nan"',
)  # fmt: skip
"""What may stand behind an equals sign."""


def spoilt(rng: random.Random, document: Any) -> Any:
    """A JSON document with one to three of its values changed, removed or added."""
    changed = copy.deepcopy(document)
    for _ in range(rng.choice((1, 1, 2, 3))):
        places = list(_places(changed))
        if not places:
            return rng.choice(VALUES)
        holder, key = rng.choice(places)
        action = rng.random()
        if action < 0.8:
            holder[key] = copy.deepcopy(rng.choice(VALUES))
        elif action < 0.9:
            del holder[key]
        elif isinstance(holder, dict):
            holder[f"{key}_"] = rng.choice(VALUES)
        else:
            holder.insert(key, copy.deepcopy(holder[key]))
    return changed


def _places(value: Any):
    if isinstance(value, dict):
        for key in value:
            yield value, key
            yield from _places(value[key])
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield value, index
            yield from _places(item)


def json_text(value: Any) -> str:
    """JSON as a careless program writes it: with NaN, and numbers of any length."""
    return json.dumps(value)


def spoilt_json(rng: random.Random, document: Any) -> bytes:
    """The bytes of a spoilt document, now and then spoilt again as bytes."""
    if rng.random() < 0.02:
        return DEEP.encode()
    data = json_text(spoilt(rng, document)).encode()
    return spoilt_bytes(rng, data) if rng.random() < 0.2 else data


def spoilt_toml(rng: random.Random, text: str) -> bytes:
    """A TOML text with values, keys or headers changed."""
    if rng.random() < 0.02:
        return ("x = " + DEEP).encode()
    lines = text.splitlines()
    for _ in range(rng.choice((1, 1, 2, 3))):
        place = rng.randrange(len(lines))
        key, equals, _ = lines[place].partition("=")
        action = rng.random()
        if action < 0.7 and equals:
            lines[place] = f"{key}= {rng.choice(TEXTS)}"
        elif action < 0.8:
            lines.pop(place)
        elif action < 0.9:
            lines.insert(place, rng.choice(lines))
        else:
            word = rng.choice(("x", "a.b", "device"))
            lines[place] = re.sub(r"[a-z_]+", word, lines[place], count=1)
        lines = lines or [""]
    data = "\n".join(lines).encode()
    return spoilt_bytes(rng, data) if rng.random() < 0.2 else data


def spoilt_bytes(rng: random.Random, data: bytes) -> bytes:
    """Bytes after one to three mutations."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        data = rng.choice(MUTATIONS)(rng, data, data)
    return data
