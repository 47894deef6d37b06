"""Split one line of a log into labelled fields: counters, durations, rates, time stamps."""

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

from paceline.importers.logs.parsing.line_clock import stamp
from paceline.importers.logs.parsing.printed_numbers import SUFFIXES, finite, half_unit

MOST_FIELDS = 60
REMEMBERED = 4096
"""Lines and labels whose fields are kept: the begin of a log is read twice, labels repeat."""


class FieldKind(StrEnum):
    """Quantity of a field, by its unit."""

    PLAIN = "plain"
    SECONDS = "seconds"
    STEP_SECONDS = "seconds per step"
    STEP_RATE = "steps per second"
    SAMPLE_RATE = "samples per second"
    TOKEN_RATE = "tokens per second"
    DEVICE_SAMPLE_RATE = "samples per second and device"
    DEVICE_TOKEN_RATE = "tokens per second and device"
    MEAN_STEP_SECONDS = "seconds per step since the start"
    INPUT_SECONDS = "seconds of input per step"
    SAMPLES = "samples per step"
    DEVICE_SAMPLES = "samples per step and device"
    TOKENS = "tokens per step"
    SAMPLES_SEEN = "samples since the start"
    ELAPSED = "seconds since the start"
    INTERVAL = "seconds since the last line"
    REMAINING = "seconds to the end"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class LogField:
    """One number of a line in SI units; ``rounding`` is half a unit in its last printed digit.

    ``label`` is the text in front of the number in lower case. ``total`` is the denominator of
    ``120/5000``. ``is_integer`` means printed without a decimal point.
    """

    label: str
    value: float
    kind: FieldKind
    rounding: float
    total: float | None = None
    is_integer: bool = False


_SECOND = r"(?:seconds?|secs?|s)"
_STEP = r"(?:iterations?|iters?|its?|steps?|stps?|batch(?:es)?|ba|updates?|minibatch(?:es)?)"
_SAMPLE = (
    r"(?:samples?|sequences?|seqs?|sents?|sentences?|images?|imgs?|ins|instances?|examples?"
    r"|ex|records?|frames?|videos?|clips?)"
)
_TOKEN = r"(?:tokens?|toks?|words?|tgt_tokens|src_tokens)"
_EACH = r"(?:[\s_/]*(?:per[\s_])?(?:gpu|device|rank|worker|chip|card|npu)s?)"
_PER = r"\s*(?:/|_?per[_\s]|p)\s*"
_TIME_UNITS = (
    (r"(?:milliseconds?|msecs?|ms)", 1e-3),
    (r"(?:microseconds?|us|µs)", 1e-6),
    (_SECOND, 1.0),
    (r"(?:minutes?|mins?)", 60.0),
    (r"(?:hours?|hrs?|h)", 3600.0),
)
_RATE_UNITS = (
    (_STEP, FieldKind.STEP_RATE),
    (_SAMPLE, FieldKind.SAMPLE_RATE),
    (_TOKEN, FieldKind.TOKEN_RATE),
)
_OF_A_DEVICE = {
    FieldKind.SAMPLE_RATE: FieldKind.DEVICE_SAMPLE_RATE,
    FieldKind.TOKEN_RATE: FieldKind.DEVICE_TOKEN_RATE,
}
_NAMED_RATES = {
    "tps": FieldKind.TOKEN_RATE,
    "wps": FieldKind.TOKEN_RATE,
    "ups": FieldKind.STEP_RATE,
    "tgs": FieldKind.TOKEN_RATE,
}
_NUMBER = re.compile(
    r"(?<![\w.\-])(?P<number>[-+]?(?:\d+(?:,\d{3})*(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)"
    r"(?P<suffix>[kKMGBT](?=[\s/,;|)\]]|$|(?:\s*(?:tok|img|sam))))?"
    r"(?:\s*(?:/|of)\s*(?P<total>\d[\d,]*)(?![\w.:]))?"
)
_CLOCK = re.compile(
    r"(?<![\w.:\-])(?:(?P<days>\d{1,3}) days?, )?(?:(?P<hours>\d{1,4}):)?(?P<minutes>\d{1,4}):"
    r"(?P<seconds>\d\d(?:\.\d{1,6})?)(?![\w:])"
)
_STAMPS = re.compile(
    r"(?<!\d)(?:20)?\d\d[-/]\d\d[-/]\d\d[ T,_]\d\d:\d\d:\d\d(?:[.,]\d{1,6})?(?:Z|[+-]\d\d:?\d\d)?"
    r"|(?<!\d)\d\d/\d\d/20\d\d[ _]\d\d:\d\d:\d\d(?:[.,]\d{1,6})?"
    r"|(?<![\d/-])\d\d[-/]\d\d[ _]\d\d:\d\d:\d\d(?:[.,]\d{1,6})?"
    r"|^\W{0,2}\d\d:\d\d:\d\d(?:[.,]\d{1,6})?(?=\W? )"
    r"|^[IWE](?:20\d\d)?\d{4} \d\d:\d\d:\d\d\.\d{1,6}(?: +\d+)?"  # glog
)
_SHORT_STAMP = re.compile(
    r"(?:(\d\d)[-/]?(\d\d)(?:/20\d\d)?[ _])?(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,6}))?"
)
_ETA = re.compile(r"eta|remain|left\b|\btogo\b|expected|estimated|<\s*$", re.I)
_NO_QUANTITY = re.compile(r"[A-Za-z_]|\.\w|%|\s?[KMGT]i?B\b|\s(?:m|d|days?|weeks?)\b")
"""Text after a number in a name, a memory size, or a coarse time."""
_MAY_BE_UNIT = re.compile(r"\s*[A-Za-zµ/]")
_WORDS = re.compile(r"[a-zµ][\w./]*(?:\s*\([a-z/ ]{1,20}\))?|\([a-z/ ]{1,20}\)", re.I)


@lru_cache(maxsize=REMEMBERED)
def fields_of(text: str) -> tuple[LogField, ...]:
    """The labelled numbers of a line, in order; time stamps of the line are left out."""
    text = _STAMPS.sub(lambda found: " " * len(found[0]), text)
    found: list[LogField] = []
    end, before = 0, ""
    clocks = {match.start(): match for match in _CLOCK.finditer(text)}
    inside = [(match.start(), match.end()) for match in clocks.values()]
    position = 0
    while len(found) < MOST_FIELDS:
        clock_at = min((start for start in clocks if start >= position), default=len(text))
        match = _NUMBER.search(text, position)
        if clock_at < len(text) and (match is None or clock_at <= match.start()):
            clock = clocks[clock_at]
            label = _label(text[end:clock_at]) or before
            clocked = _clock_field(label, clock)
            found.append(_remaining(clocked) if _ETA.search(text[end:clock_at]) else clocked)
            position = end = clock.end()
            before = label
            continue
        if match is None:
            break
        position = match.end()
        if any(start < match.start() < stop for start, stop in inside):
            continue
        between = text[end : match.start()]
        label = _label(between) or ("" if " | " in between else _continued(before))
        field, stop = _number_field(label, match, text)
        if field is None:
            continue
        if between.rstrip().endswith("(") and not _label(between):
            field = _as_mean(field, found)
        if not _ETA.search(between[-20:]):
            found.append(field)
        elif field.kind is FieldKind.SECONDS:
            found.append(_remaining(field))
        before, position = field.label, max(stop, position)
        end = position
    return tuple(found)


def _remaining(field: LogField) -> LogField:
    return replace(field, label=f"{field.label} left", kind=FieldKind.REMAINING)


def _as_mean(field: LogField, before: list[LogField]) -> LogField:
    """A number in parentheses is the mean of the last one of its kind: ``3s, 8/s (2s, 9/s)``."""
    of_kind = [one.label for one in before[-3:] if one.kind is field.kind]
    return replace(field, label=_continued(of_kind[-1])) if of_kind else field


def _continued(label: str) -> str:
    """Label of a number that follows another one without text, as in ``0.93 (0.95)``."""
    return label if label.endswith("+") or not label else f"{label}+"


@lru_cache(maxsize=REMEMBERED)
def _label(text: str) -> str:
    """The last words before a number, in lower case, without separators."""
    words = _WORDS.findall(re.split(r"[|,;{}\[\]]", text.rstrip("|,;{}[]\"'=:( \t"))[-1])
    return " ".join(words[-4:]).lower()


def _clock_field(label: str, match: re.Match[str]) -> LogField:
    seconds = 60.0 * int(match["minutes"]) + float(match["seconds"])
    seconds += 3600.0 * int(match["hours"] or 0) + 86400.0 * int(match["days"] or 0)
    rounding = half_unit(match["seconds"]) if "." in match["seconds"] else 0.5
    return LogField(label, seconds, FieldKind.SECONDS, rounding)


def _number_field(label: str, match: re.Match[str], text: str) -> tuple[LogField | None, int]:
    """The field of a number and the end of its unit; None for a number inside a name."""
    value = finite(match["number"])
    if value is None:
        return None, match.end()
    rounding, integer = half_unit(match["number"]), re.fullmatch(r"[\d,]+", match["number"])
    if match["suffix"]:
        value, rounding = value * SUFFIXES[match["suffix"]], rounding * SUFFIXES[match["suffix"]]
    if match["total"]:
        total = finite(match["total"])
        return (
            LogField(label, value, FieldKind.PLAIN, rounding, total, is_integer=bool(integer)),
            match.end(),
        )
    rest = text[match.end() : match.end() + 40]
    kind, scale, each, stop = _unit(rest)
    if kind is FieldKind.OTHER and stop:  # the rate belongs to the duration in front of it
        root, before = label.rstrip("+").removesuffix("/s"), text[: match.start()]
        in_mean = before.count("(") > before.count(")")
        label = f"{root}/s{'/gpu' if each else ''}{'+' if in_mean else ''}"
    if kind is FieldKind.PLAIN:
        if _NO_QUANTITY.match(rest):
            return None, match.end()
        kind, scale, each = _unit_of_label(label)
    return (
        LogField(
            label,
            value * scale,
            _OF_A_DEVICE.get(kind, kind) if each else kind,
            rounding * scale,
            is_integer=bool(integer) and not match["suffix"],
        ),
        match.end() + stop,
    )


def _unit(rest: str) -> tuple[FieldKind, float, bool, int]:
    """Kind, factor to SI, whether per device, and length of the unit in front of ``rest``."""
    if _MAY_BE_UNIT.match(rest) is None:
        return FieldKind.PLAIN, 1.0, False, 0
    for unit, scale in _TIME_UNITS:
        match = re.match(rf"\s?{unit}(?:{_PER}(?P<step>{_STEP})\b)?(?![\w/])", rest, re.I)
        if match:
            kind = FieldKind.STEP_SECONDS if match["step"] else FieldKind.SECONDS
            return kind, scale, False, match.end()
        if re.match(rf"\s?{unit}\s*/\s*\w", rest, re.I):
            return FieldKind.OTHER, 1.0, False, 0  # seconds per epoch, per image
    for unit, kind in _RATE_UNITS:
        match = re.match(
            rf"\s?{unit}(?P<first>{_EACH})?{_PER}(?:{_SECOND}|(?P<minute>min(?:ute)?)"
            rf"|(?P<hour>h(?:our|r)?))(?P<each>{_EACH})?(?![\w/])",
            rest,
            re.I,
        )
        if match:
            each = bool(match["each"] or match["first"])
            scale = 1 / 60 if match["minute"] else 1 / 3600 if match["hour"] else 1.0
            return kind, scale, each, match.end()
    bare = re.match(rf"/s(?P<each>{_EACH})?(?![\w/])", rest)  # "512/s": of something
    if bare:
        return FieldKind.OTHER, 1.0, bool(bare["each"]), bare.end()
    return FieldKind.PLAIN, 1.0, False, 0


@lru_cache(maxsize=REMEMBERED)
def _unit_of_label(label: str) -> tuple[FieldKind, float, bool]:
    """Kind, factor to SI and whether per device, as the label states: ``time (ms)``."""
    for unit, scale in _TIME_UNITS:
        if re.fullmatch(rf"{unit}{_PER}{_STEP}", label.rstrip("+")):
            return FieldKind.STEP_SECONDS, scale, False
    for unit, kind in ((_SAMPLE, FieldKind.SAMPLES), (_TOKEN, FieldKind.TOKENS)):
        if re.fullmatch(rf"{unit}{_PER}{_STEP}", label.rstrip("+")):
            return kind, 1.0, False
    name = label.rstrip("+").split("/")[-1] if "/sec" not in label and "/s" not in label else label
    name = name.rstrip("+")
    each = re.search(r"gpu|device|tgs|per[_ ](?:rank|worker|chip)", label) is not None
    for unit, kind in _RATE_UNITS:
        if re.search(rf"\b{unit}(?:{_EACH})?{_PER}{_SECOND}(?:{_EACH})?\)?$", label.rstrip("+")):
            return kind, 1.0, each
        if re.search(rf"(?:^|_){unit}_per_sec(?:ond)?(?:_|$)", name):
            return kind, 1.0, each
    last = name.split(" ")[-1]
    if last in _NAMED_RATES:
        return _NAMED_RATES[last], 1.0, each
    for unit, scale in _TIME_UNITS:
        if re.search(rf"(?:\b|_){unit}(?:{_PER}|_per_){_STEP}$", name):
            return FieldKind.STEP_SECONDS, scale, False
        whole = "" if unit in (_TIME_UNITS[3][0], _TIME_UNITS[4][0]) else rf"|^{unit}$"
        if (
            re.search(rf"\({unit}\)$|_{unit}$|\bin {unit}${whole}", name)
            and unit != _TIME_UNITS[4][0]
        ):
            step = re.search(rf"(?:per|/)[\s_]*{_STEP}\b", name)
            return (FieldKind.STEP_SECONDS if step else FieldKind.SECONDS), scale, False
    return FieldKind.PLAIN, 1.0, False


def line_stamp(text: str) -> tuple[float, float] | None:
    """Time stamp of a line in seconds and its resolution; None without one.

    A stamp without a year (``[03/14 12:00:00``, as detectron2 prints) or without a date counts from
    an arbitrary day: only differences are used.
    """
    seconds = stamp(text)
    match = _STAMPS.search(text[:200])
    if seconds is None and match is not None:
        parts = _SHORT_STAMP.search(match[0])
        if parts is not None:
            month, day, hour, minute, second = (int(part or 0) for part in parts.groups()[:5])
            fraction = float(f"0.{parts[6]}") if parts[6] else 0.0
            seconds = ((month * 31 + day) * 24 + hour) * 3600.0 + minute * 60 + second + fraction
    if seconds is None or match is None:
        return None
    fraction_digits = re.search(r":\d\d[.,](\d{1,6})", match[0])
    return seconds, 10.0 ** -len(fraction_digits[1]) if fraction_digits else 1.0
