"""Fields of protocol buffer messages, parsed without a schema."""

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
Field = tuple[int, int, int | bytes]


def fields(message: bytes) -> Iterator[Field]:
    """Yield number, wire type and content of each field."""
    at = 0
    while at < len(message):
        key, at = varint(message, at)
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value, at = varint(message, at)
            yield number, kind, value
            continue
        if kind == BYTES:
            size, at = varint(message, at)
        elif kind in (FIXED64, FIXED32):
            size = 8 if kind == FIXED64 else 4
        else:
            raise ValueError(f"unknown wire type {kind}")
        if at + size > len(message):
            raise ValueError("truncated message")
        yield number, kind, message[at : at + size]
        at += size


def varint(message: bytes, at: int) -> tuple[int, int]:
    """A varint, and the position after it."""
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise ValueError("varint longer than 64 bits")
