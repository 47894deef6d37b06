"""Quantities with units (``10gbit``, ``25MiB``, ``200us``), converted to SI and formatted.

Parsers return SI floats (bytes, seconds, bytes per second, FLOP per second); formatters
return short text for tables. Nothing else in the package converts units.
"""

import math
import re

from paceline.errors import InputError

_NUMBER = re.compile(r"^\s*([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)\s*([A-Za-zµ/%]*)\s*$")
_DECIMAL = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15, "e": 1e18}
_BINARY = {"ki": 2.0**10, "mi": 2.0**20, "gi": 2.0**30, "ti": 2.0**40, "pi": 2.0**50}
_SECONDS = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_SECONDS |= {"min": 60.0, "h": 3600.0, "d": 86400.0, "day": 86400.0, "days": 86400.0}

_COUNT = re.compile(r"([0-9.]+(?:[eE][0-9]+)?)\s*([kKmM]?)")
_COUNT_SCALES = {"": (1,), "k": (1000, 1024), "m": (1_000_000, 1_048_576)}
_INTEGER = re.compile(r"\s*[-+]?[0-9]+\s*", re.ASCII)
_PLAIN_NUMBER = re.compile(r"\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\s*", re.ASCII)
LARGEST_FACTOR = 1e6
LARGEST_INTEGER = 1e15
"""Integers up to here are exact as floats."""

_DURATIONS = "200us, 5min or 30d"


def read_integer(text: str) -> int:
    """The integer of ASCII digits; `int` also reads ``1_000`` and other digits."""
    if _INTEGER.fullmatch(text) is None:
        raise ValueError(f"not an integer: {text!r:.60}")
    return int(text)


def read_number(text: str) -> float:
    """The finite number of ASCII digits; `float` also reads ``1_0``, ``nan`` and other digits."""
    number = float(text) if _PLAIN_NUMBER.fullmatch(text) else math.nan
    if not math.isfinite(number):
        raise ValueError(f"not a finite number: {text!r:.60}")
    return number


def parse_bytes(text: str | float) -> float:
    """Bytes of ``25MiB``, ``2.6 MB``, ``100B``; a number is taken as bytes."""
    number, unit = _split(text, "size", "25MiB")
    scale = _prefix(unit.lower().removesuffix("b") if unit.lower().endswith("b") else unit.lower())
    if scale is None:
        raise _bad(text, "size", "25MiB")
    return _not_negative(number * scale, text, "size")


def parse_seconds(text: str | float) -> float:
    """Seconds of ``200us``, ``1.5 ms``, ``2min``; a number is taken as seconds."""
    number, unit = _split(text, "duration", _DURATIONS)
    scale = _SECONDS.get(unit)
    if scale is None:
        raise _bad(text, "duration", _DURATIONS)
    return _not_negative(number * scale, text, "duration")


def parse_percent(text: str | float) -> float:
    """The fraction 0.02 of ``2 %``; a number is taken as a fraction."""
    number, unit = _split(text, "percentage", "2 %")
    if unit not in ("", "%"):
        raise _bad(text, "percentage", "2 %")
    return _not_negative(number / 100.0 if unit else number, text, "percentage")


def parse_bandwidth(text: str | float) -> float:
    """Bytes per second of ``10gbit``, ``12.5GB/s``; a number is taken as B/s."""
    number, unit = _split(text, "bandwidth", "10gbit")
    stem = re.sub(r"(/s|ps)$", "", unit)
    if re.search(r"bits?$", stem.lower()):
        scale, factor = _prefix(re.sub(r"bits?$", "", stem.lower())), 1 / 8
    elif stem.endswith("b") and stem != "b":
        scale, factor = _prefix(stem[:-1].lower()), 1 / 8
    else:
        scale, factor = _prefix(stem.lower().removesuffix("b")), 1.0
    if scale is None:
        raise _bad(text, "bandwidth", "10gbit")
    return _positive(number * scale * factor, text, "bandwidth")


def parse_flops(text: str | float) -> float:
    """FLOP per second of ``15.7TFLOP/s``, ``96 gflops``; a number is taken as FLOP/s."""
    number, unit = _split(text, "rate", "15.7TFLOP/s")
    scale = _prefix(re.sub(r"(flop/s|flops|flop)$", "", unit.lower()))
    if scale is None:
        raise _bad(text, "rate", "15.7TFLOP/s")
    return _positive(number * scale, text, "rate")


def parse_count(text: str | float) -> float:
    """The count of ``15T``, ``1.28M`` or ``90``: decimal prefixes, greater than 0."""
    match = None if isinstance(text, int | float) else _NUMBER.match(text)
    number, prefix = (float(text), "") if match is None and _is_number(text) else (0.0, "?")
    if match is not None and _is_number(match[1]):
        number, prefix = float(match[1]), match[2].lower().replace("b", "g")
    scale = _DECIMAL.get(prefix)
    if scale is None:
        raise _bad(text, "count", "15T")
    return _positive(number * scale, text, "count")


def parse_batch(text: str | int) -> int | str:
    """Samples (``1536``), or tokens as text (``4Mtok``), which a sequence length converts."""
    if isinstance(text, bool) or not isinstance(text, str | int):
        raise _bad(text, "batch", "1536 (samples) or 4Mtok (tokens)")
    if isinstance(text, int):
        return text
    try:
        return read_integer(text)
    except ValueError:
        tokens_of_batch(text)
        return text


def tokens_of_batch(text: str) -> float:
    """Tokens of ``4Mtok``."""
    found = re.fullmatch(r"(.*?)\s*tok(ens?)?", text.strip(), re.IGNORECASE)
    if found is None:
        raise InputError(
            f"invalid batch '{text:.60}'", f"{integer_hint(text)} (samples), or give tokens: 4Mtok"
        )
    return parse_count(found[1])


def parse_share(text: str | float) -> float:
    """The fraction of ``90%`` or ``0.9``: greater than 0, at most 1."""
    plain = str(text).strip()
    number = plain.removesuffix("%").rstrip()
    if not _is_number(number):
        raise _bad(text, "percentage", "90%")
    share = float(number) / (100.0 if plain.endswith("%") else 1.0)
    if not 0 < share <= 1:
        raise InputError(
            f"percentage out of range: '{text}'", "give a value above 0% and at most 100%"
        )
    return share


def parse_scale(text: str) -> dict[str, float]:
    """Positive factors by name of ``flops=2,link=0.5``."""
    found = {}
    for part in text.split(","):
        name, _, number = part.partition("=")
        factor = float(number) if _is_number(number) else 0.0
        if not 0 < factor < LARGEST_FACTOR:
            raise InputError(f"invalid scale '{part}'", "use factors such as flops=2,link=0.5")
        found[name.strip()] = factor
    return found


def integer_hint(text: str) -> str:
    """Hint for text that is not an integer: ``64k`` is 64000 or 65536."""
    found = _COUNT.fullmatch(text)
    if found is None or not _is_number(found[1]):
        return "use digits only"
    sizes = [float(found[1]) * scale for scale in _COUNT_SCALES[found[2].lower()]]
    if any(size > LARGEST_INTEGER or not size.is_integer() for size in sizes):
        return "use digits only"
    return f"write {' or '.join(str(int(size)) for size in sizes)}"


def _is_number(text: object) -> bool:
    try:
        read_number(str(text))
    except ValueError:
        return False
    return True


def format_seconds(seconds: float) -> str:
    """``683 ms``, ``41.2 s``, ``160 us``: three significant digits."""
    if not math.isfinite(seconds):
        return str(seconds)
    for limit, scale, unit in ((1e-6, 1e9, "ns"), (1e-3, 1e6, "us"), (1.0, 1e3, "ms")):
        if abs(seconds) < limit:
            return f"{_digits(seconds * scale)} {unit}"
    if abs(seconds) < 7200:
        return f"{_digits(seconds)} s"
    return f"{_digits(seconds / 3600)} h"


def seconds_unit(largest_seconds: float) -> tuple[float, str]:
    """Factor and name of the one unit for a column or axis that reaches ``largest_seconds``.

    A duration in seconds times the factor is a number in that unit: ``(1e3, "ms")``.
    """
    for limit, scale, unit in ((1e-6, 1e9, "ns"), (1e-3, 1e6, "us"), (10.0, 1e3, "ms")):
        if 0 < abs(largest_seconds) < limit:
            return scale, unit
    return (1 / 3600, "h") if 36000 <= abs(largest_seconds) < math.inf else (1.0, "s")


def format_bytes(size: float) -> str:
    """``2.64 MB``: decimal prefixes, three significant digits."""
    return f"{_scaled(size)}B"


def format_bandwidth(bytes_per_second: float) -> str:
    """``1.90 GB/s``."""
    return f"{_scaled(bytes_per_second)}B/s"


def format_flops(flops: float) -> str:
    """``96.1 GFLOP``: a count, not a rate."""
    return f"{_scaled(flops)}FLOP"


def format_count(count: float) -> str:
    """``25.6 M``: parameters and other counts."""
    return _scaled(count).strip()


def plural(count: float, noun: str, several: str = "") -> str:
    """``1 launch``, ``2 launches``, ``90,000 rows``; ``several`` is an irregular plural."""
    if count == 1:
        return f"1 {noun}"
    if not several and noun.endswith("y") and noun[-2] not in "aeiou":
        several = f"{noun[:-1]}ies"
    elif not several:
        several = f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"
    return f"{count:,} {several}"


def _digits(value: float) -> str:
    magnitude = abs(value)
    if magnitude >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if magnitude >= 9.995 else f"{value:.2f}"


def _scaled(value: float) -> str:
    for scale, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= scale * 0.9995:
            return f"{_digits(value / scale)} {prefix}"
    return f"{value:.0f} "


def _split(text: str | float, kind: str, example: str) -> tuple[float, str]:
    """Number and unit; a text needs its unit, a number is in SI units."""
    if isinstance(text, int | float):
        return float(text), ""
    match = _NUMBER.match(text)
    if match is None:
        raise _bad(text, kind, example)
    try:
        number = float(match[1])
    except ValueError:
        raise _bad(text, kind, example) from None
    if number and not match[2]:
        raise InputError(f"the {kind} '{text}' has no unit", f"use a value such as {example}")
    return number, match[2]


def _prefix(letters: str) -> float | None:
    return _DECIMAL.get(letters, _BINARY.get(letters))


def _bad(text: str | float, kind: str, example: str) -> InputError:
    return InputError(f"'{text}' is not a {kind}", f"use a value such as {example}")


def _not_negative(value: float, text: str | float, kind: str) -> float:
    if not (math.isfinite(value) and value >= 0):
        raise InputError(f"{kind} out of range: '{text}'", "give a finite number of at least 0")
    return value


def _positive(value: float, text: str | float, kind: str) -> float:
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{kind} out of range: '{text}'", "give a finite number greater than 0")
    return value
