"""The walk through one prediction in docs/explanation/predictor.md is current and adds up."""

import math
import re

import pytest

from predictor_walkthrough import BEGIN, END, PAGE, walkthrough

TEXT = PAGE.read_text(encoding="utf-8")
SECTION = TEXT[TEXT.index(BEGIN) : TEXT.index(END)]


def test_the_page_has_the_values_of_the_stages():
    assert walkthrough() == SECTION, "run python tools/predictor_walkthrough.py"


def rows(header):
    """Numbers of the table that follows a header."""
    table = SECTION[SECTION.index(header) :].split("\n\n")[0].splitlines()[2:]
    return [[float(x) for x in re.findall(r"(?<=\| )[\d.]+(?= )", line)] for line in table]


def value(pattern):
    return [float(x) for x in re.search(pattern, SECTION).groups()]


def test_a_layer_is_the_longer_of_arithmetic_and_memory():
    gflop, rate = value(r"as long as ([\d.]+) GFLOP at the attainable ([\d.]+) TFLOP/s")
    megabytes, bandwidth = value(r"long as\n([\d.]+) MB at (\d+) GB/s")
    launch, total = value(r"plus ([\d.]+) us to launch the kernel is\n([\d.]+) us")
    roof = max(gflop / rate * 1e3, megabytes / bandwidth * 1e3)
    assert roof + launch == pytest.approx(total, abs=0.02)


def test_messages_are_corrected():
    (faster,) = value(r"messages are ([\d.]+) times as fast")
    modelled, scheduled = rows("| message | MB |"), rows("| message | backward")
    for own, corrected in zip(modelled, scheduled, strict=True):
        assert own[-1] / faster == pytest.approx(corrected[3], abs=2e-4)


def test_the_step_can_be_recomputed_by_hand():
    (overhead,) = value(r"begins with ([\d.]+) ms of the framework")
    (clock,) = value(r"reaches backward after ([\d.]+) ms")
    (forward,) = value(r"together take ([\d.]+) ms forward")
    (factor,) = value(r"computing takes\n([\d.]+) times")
    (slowest,) = value(r"slowest of 16 takes ([\d.]+) times")
    assert overhead + forward * factor * slowest == pytest.approx(clock, abs=1e-3)
    (launch,) = value(r"\n(\d+) us of the device")
    interference, slower = value(r"w \+ ([\d.]+) x min\(w, b / ([\d.]+)\)")
    free = 0.0
    for _, backward, ready, seconds, end in rows("| message | backward"):
        work = backward + launch / 1e3
        clock += work + interference * min(work, max(0.0, free - clock) / slower)
        assert clock == pytest.approx(ready, abs=1e-3)
        free = max(clock, free) + seconds
        assert free == pytest.approx(end, abs=1e-3)
    update, step = value(r"update of ([\d.]+) ms follows[^.]*?takes ([\d.]+) ms")
    assert max(clock, free) + update == pytest.approx(step, abs=1e-3)


def test_the_interval_can_be_recomputed_by_hand():
    noise, variance, deviation = value(
        r"deviation of ([\d.]+) and a variance of ([\d.]+)\n[^.]*?deviation of ([\d.]+)\."
    )
    assert math.hypot(noise, math.sqrt(variance)) == pytest.approx(deviation, abs=2e-4)
    low, high = value(r"exp\((-[\d.]+) x [\d.]+\) to exp\(([\d.]+) x")
    fast, slow = value(r"a step of ([\d.]+) to ([\d.]+) ms")
    (step,) = value(r"the step takes ([\d.]+) ms")
    assert step / math.exp(low * deviation) == pytest.approx(slow, rel=1e-3)
    assert step / math.exp(high * deviation) == pytest.approx(fast, rel=1e-3)
