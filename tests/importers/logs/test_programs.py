"""Logs of 120 programs in six variants, and 1,000 mutations: right, or refused, never wrong."""

import random
import re
from collections import Counter

import pytest
from tests.importers.logs import programs
from tests.importers.logs.more_programs import MORE_PROGRAMS
from tests.importers.logs.programs import VARIANTS, Program, simulated, two_ranks

from paceline.errors import InputError
from paceline.importers.logs import ParsedLog, read_log
from paceline.importers.logs.inferred import READER
from paceline.importers.logs.parsing.log_lines import split_rank

PROGRAMS = programs.PROGRAMS | MORE_PROGRAMS
WITHIN = 0.03
NEEDS_BATCH = {"resnet_mxnet"}
"""Programs that print samples per second only: the step time needs --batch."""
CLEAR = [name for name, program in PROGRAMS.items() if not program.unclear]


def outcome(log: ParsedLog | None, program: Program) -> str:
    """``right``, ``refused`` or ``wrong`` for the step time that would be stored."""
    seconds = None if log is None or log.contradictions else log.step_seconds
    if seconds is None:
        return "refused"
    return "right" if abs(seconds - program.seconds) <= WITHIN * program.seconds else "wrong"


def read(folder, lines: list[str]) -> ParsedLog | None:
    path = folder / "train.log"
    path.write_text("\n".join(lines), encoding="utf-8")
    try:
        return read_log(path)
    except InputError:
        return None


def inferred(lines: list[str]) -> ParsedLog:
    return READER.read([split_rank(line) for line in lines])


@pytest.mark.parametrize("name", PROGRAMS)
def test_variants_are_right_or_refused(tmp_path, name):
    program = PROGRAMS[name]
    found = {
        kind: outcome(read(tmp_path, lines(program)), program) for kind, lines in VARIANTS.items()
    }
    assert "wrong" not in found.values(), found
    if program.unclear:
        assert set(found.values()) == {"refused"}
    elif name not in NEEDS_BATCH:
        assert found["plain"] == found["coloured"] == "right", found


@pytest.mark.thorough
def test_inference_without_any_reader_is_right_on_most_programs():
    found = {
        name: [
            outcome(inferred(lines(PROGRAMS[name])), PROGRAMS[name]) for lines in VARIANTS.values()
        ]
        for name in PROGRAMS
    }
    total = Counter(one for outcomes in found.values() for one in outcomes)
    right = [name for name in CLEAR if found[name][0] == "right"]
    assert total["wrong"] == 0
    assert len(right) >= 0.85 * len(CLEAR), sorted(set(CLEAR) - set(right))


LABELS = re.compile(r"\b[a-zA-Z]\w{2,}(?=[:= ]+[\d.])")
NEW_LABELS = ("alpha", "metric", "value", "x1", "stat")
UNITS = {
    "ms": (r"(\d+(?:\.\d+)?) ?ms\b", lambda value: f"{float(value) / 1e3:.6f}s"),
    "s": (r"(\d+\.\d+)s\b(?!/)", lambda value: f"{1e3 * float(value):.4f}ms"),
    "it/s": (r"(\d+(?:\.\d+)?) ?it/s", lambda value: f"{1 / max(float(value), 1e-9):.5f}s/it"),
    "sec": (r"(\d+\.\d+) sec\b(?!/)", lambda value: f"{1e3 * float(value):.4f} ms"),
}


def rename(lines: list[str], dice: random.Random) -> list[str]:
    """One label of the log has another name."""
    labels = sorted({label for line in lines for label in LABELS.findall(line)})
    if not labels:
        return lines
    old, new = dice.choice(labels), dice.choice(NEW_LABELS)
    return [re.sub(rf"\b{old}\b", new, line) for line in lines]


def convert(lines: list[str], dice: random.Random) -> list[str]:
    """All figures in one unit are printed in another one."""
    pattern, other = UNITS[dice.choice(sorted(UNITS))]
    return [re.sub(pattern, lambda found: other(found[1]), line) for line in lines]


def drop(lines: list[str], dice: random.Random) -> list[str]:
    """A third of the lines is missing."""
    return [line for line in lines if dice.random() > 0.33]


def damage(lines: list[str], dice: random.Random) -> list[str]:
    """Some lines are cut, or written over each other."""
    return [
        line[: dice.randrange(1, len(line) + 1)] + dice.choice(("", lines[0][:40]))
        if line and dice.random() < 0.1
        else line
        for line in lines
    ]


def shuffle(lines: list[str], dice: random.Random) -> list[str]:
    """Lines of ranks arrive late by up to four lines."""
    order = sorted(range(len(lines)), key=lambda at: at + dice.uniform(0, 4))
    return [lines[at] for at in order]


def mutant(name: str, dice: random.Random) -> list[str]:
    program = PROGRAMS[name]
    ranks = dice.random() < 0.3
    lines = two_ranks(program) if ranks else list(simulated(program))
    changes = [rename, convert, drop, damage, *([shuffle] if ranks else [])]
    for change in dice.sample(changes, dice.choice((1, 1, 2))):
        lines = change(lines, dice)
    return lines


@pytest.mark.parametrize(
    "mutants", [120, pytest.param(1000, marks=pytest.mark.slow)], ids=["some", "many"]
)
@pytest.mark.thorough
def test_mutated_logs_are_right_refused_or_warned_about(tmp_path, mutants):
    found: Counter[str] = Counter()
    for seed in range(mutants):
        dice = random.Random(seed)
        name = dice.choice(CLEAR)
        log = read(tmp_path, mutant(name, dice))
        result = outcome(log, PROGRAMS[name])
        if result == "wrong" and any("processes" not in text for text in log.warnings):
            result = "warned"
        assert result != "wrong", (seed, name, log)
        found[result] += 1
    assert found["right"] > 0.6 * mutants
