"""Ways in which logs and traces come to harm; deterministic for a seed."""

import random
from collections.abc import Callable
from pathlib import Path

FIXTURES = Path(__file__).parent / "fixtures"
SAMPLES = tuple(
    path
    for folder in ("logs", "traces")
    for path in sorted((FIXTURES / folder).iterdir())
    if path.is_file()
)
HUGE = (b"9" * 400, b"1e999", b"-1e-999", b"NaN", b"Infinity", b"18446744073709551616", b"0", b"-1")

Mutation = Callable[[random.Random, bytes, bytes], bytes]


def truncate(rng: random.Random, data: bytes, other: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def splice(rng: random.Random, data: bytes, other: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]


def flip_bytes(rng: random.Random, data: bytes, other: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randrange(1, 200)):
        if changed:
            changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def huge_numbers(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """Replace runs of digits."""
    parts: list[bytes] = []
    position = 0
    while position < len(data):
        end = position
        while end < len(data) and data[end : end + 1].isdigit():
            end += 1
        if end > position:
            parts.append(rng.choice(HUGE) if rng.random() < 0.1 else data[position:end])
            position = end
        else:
            parts.append(data[position : position + 1])
            position += 1
    return b"".join(parts)


def interleave(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """Lines of two files mixed, now and then in the middle of a line."""
    mine, theirs = data.split(b"\n"), other.split(b"\n")
    mixed: list[bytes] = []
    while mine and theirs:
        line = (mine if rng.random() < 0.7 else theirs).pop(0)
        mixed.append(line[: rng.randrange(len(line) + 1)] if rng.random() < 0.1 else line + b"\n")
    return b"".join(mixed)


def shuffle_lines(rng: random.Random, data: bytes, other: bytes) -> bytes:
    lines = data.split(b"\n")
    rng.shuffle(lines)
    return b"\n".join(lines)


def insert_binary(rng: random.Random, data: bytes, other: bytes) -> bytes:
    place = rng.randrange(len(data) + 1)
    return data[:place] + rng.randbytes(rng.randrange(1, 5000)) + data[place:]


def repeat_a_part(rng: random.Random, data: bytes, other: bytes) -> bytes:
    start = rng.randrange(len(data) + 1)
    end = min(len(data), start + rng.randrange(1, 400))
    return data[:end] + data[start:end] * rng.randrange(1, 50) + data[end:]


def remove_newlines(rng: random.Random, data: bytes, other: bytes) -> bytes:
    return data.replace(b"\n", rng.choice([b"", b"\r", b" ", b"\x00"]))


MUTATIONS: tuple[Mutation, ...] = (
    truncate,
    splice,
    flip_bytes,
    huge_numbers,
    interleave,
    shuffle_lines,
    insert_binary,
    repeat_a_part,
    remove_newlines,
)


def mutated(seed: int) -> tuple[Path, bytes]:
    """A sample's path and its bytes after one to three mutations."""
    rng = random.Random(seed)
    path = rng.choice(SAMPLES)
    data = path.read_bytes()
    for _ in range(rng.choice((1, 1, 2, 3))):
        other = rng.choice(SAMPLES).read_bytes()
        data = rng.choice(MUTATIONS)(rng, data, other)
    return path, data
