"""Simulated studies of known truth: coverage, false positives, power, and means after a warm-up.

Every row simulates 2,000 studies with the functions that studies and `compare` use. Launches have a
coefficient of variation of 3 %. ``--page`` writes the tables as a page of the documentation.
"""

import math
import statistics
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from common import arguments, finish, machine

from paceline.analysis.regression import compare_seconds
from paceline.stats.distributions import SIGNIFICANCE
from paceline.stats.estimate import estimate, pooled_variation
from paceline.stats.modes import modes
from paceline.stats.pairs import log_differences
from paceline.stats.power import detectable_change
from paceline.stats.stopping import StoppingRule, are_correlated
from paceline.stats.warmup import Steadiness, steady_state

NOISE = 0.03
"""Coefficient of variation of the launches of one campaign."""

MOST = 30
RULE = StoppingRule(0.02, most=MOST)
Values = npt.NDArray[np.float64]
Random = np.random.Generator
Row = tuple[str, ...]


def independent(random: Random, count: int) -> Values:
    """Independent log-normal launches with mean 1."""
    return np.exp(random.normal(-(NOISE**2) / 2, NOISE, count))


def correlated(random: Random, count: int) -> Values:
    """Consecutive launches with a correlation of 0.7."""
    values = random.normal(0.0, NOISE, count)
    for number in range(1, count):
        values[number] = 0.7 * values[number - 1] + math.sqrt(1 - 0.7**2) * values[number]
    return np.exp(values)


def drifting(random: Random, count: int) -> Values:
    """Launches that slow down by 0.3 % each: by their own noise in ten launches."""
    return independent(random, count) * (1.0 + 0.1 * NOISE * np.arange(count))


def bimodal(share: float) -> Callable[[Random, int], Values]:
    """A ``share`` of the launches is 1.5 times slower."""
    return lambda random, count: (
        independent(random, count) * np.where(random.random(count) < share, 1.5, 1.0)
    )


def one_campaign(random: Random, count: int) -> Values:
    """Launches of one campaign; campaigns vary as much as launches."""
    own: Values = independent(random, count) * np.exp(random.normal(0.0, NOISE))
    return own


COVERAGE: dict[str, tuple[Callable[[Random, int], Values], Callable[[int], float]]] = {
    "independent, log-normal": (independent, lambda count: 1.0),
    "one campaign, mean of all campaigns": (one_campaign, lambda count: 1.0),
    "40 % of launches 1.5 times slower": (bimodal(0.4), lambda count: 1.2),
    "10 % of launches 1.5 times slower": (bimodal(0.1), lambda count: 1.05),
    "consecutive launches correlated by 0.7": (correlated, lambda count: math.exp(NOISE**2 / 2)),
    "drift of 0.3 % per launch, mean of the study": (
        drifting,
        lambda count: 1.0 + 0.05 * NOISE * (count - 1),
    ),
    "drift of 0.3 % per launch, level after it": (
        drifting,
        lambda count: 1.0 + 0.1 * NOISE * count,
    ),
}
"""Launches of a study in order, and the true value for their number."""

SIZES = (3, 5, 8, 12, 20)


def coverage(random: Random, rounds: int) -> Iterable[Row]:
    """Fraction of 95 % intervals with the true value; by the rule: covered, stopped, warned."""
    for name, (draw, truth) in COVERAGE.items():
        shown = []
        for size in SIZES:
            found = [estimate(draw(random, size).tolist()) for _ in range(rounds)]
            shown.append(sum(one.low <= truth(size) <= one.high for one in found))
        covered = stopped = warned = 0
        for _ in range(rounds):
            values = draw(random, MOST).tolist()
            count = 0
            while (wanted := RULE.wanted(values[:count])) > count:
                count = wanted
            used = values[:count]
            interval = estimate(used, sequential=True)
            covered += interval.low <= truth(count) <= interval.high
            stopped += count < MOST
            warned += bool(modes(used)) or are_correlated(used)
        yield (name, *(percent(one, rounds) for one in (*shown, covered, stopped, warned)))


def same_study(
    draw: Callable[[Random, int], Values], interleaved: bool, scale: float = 1.0
) -> Callable[[Random, int], float]:
    """p-value of two equal configurations of one study, in blocks or one after the other."""

    def p_value(random: Random, size: int) -> float:
        series = draw(random, 2 * size)
        first = np.zeros(2 * size, dtype=bool)
        if interleaved:
            first[np.arange(0, 2 * size, 2) + random.integers(0, 2, size)] = True
        else:
            first[:size] = True
        wider = 1.0 + (series[~first] - 1.0) * scale
        (found,) = log_differences([series[first].tolist(), wider.tolist()])
        return found.p_value

    return p_value


def two_studies(earlier: int, ratio: float = 1.0) -> Callable[[Random, int], float]:
    """p-value of `compare` for two equal campaigns after a number of earlier ones."""

    def p_value(random: Random, size: int) -> float:
        base, new, *history = campaigns(random, 2 + earlier, size, ratio)
        return compare_seconds(base, new, [statistics.fmean(one) for one in history])[1]

    return p_value


def campaigns(random: Random, count: int, size: int, ratio: float) -> list[list[float]]:
    """Campaigns whose effects are ``ratio`` times as wide as those of launches."""
    effects = np.exp(random.normal(0.0, ratio * NOISE, count))
    return [(effect * independent(random, size)).tolist() for effect in effects]


ERRORS: dict[str, Callable[[Random, int], float]] = {
    "one study, independent": same_study(independent, True),
    "one study, one configuration varies 4 times as much": same_study(independent, True, 4.0),
    "one study, 40 % of launches 1.5 times slower": same_study(bimodal(0.4), True),
    "one study, correlated by 0.7, blocks": same_study(correlated, True),
    "one study, correlated by 0.7, one after the other": same_study(correlated, False),
    "one study, drift of 0.3 % per launch, blocks": same_study(drifting, True),
    "one study, drift of 0.3 % per launch, one after the other": same_study(drifting, False),
    "`compare`, campaigns do not vary": two_studies(0, 0.0),
    "`compare`, campaigns vary as launches, no history": two_studies(0),
    "`compare`, campaigns vary as launches, 3 earlier ones": two_studies(3),
    "`compare`, campaigns vary as launches, 6 earlier ones": two_studies(6),
    "`compare`, campaigns vary 3 times as much, 6 earlier ones": two_studies(6, 3.0),
}
"""p-value of two equal configurations by launches of each."""


def errors(random: Random, rounds: int) -> Iterable[Row]:
    """Fraction of equal configurations that are reported as different at the 5 % level."""
    for name, p_value in ERRORS.items():
        counts = [
            sum(p_value(random, size) < SIGNIFICANCE for _ in range(rounds)) for size in SIZES
        ]
        yield (name, *(percent(one, rounds) for one in counts))


def power(random: Random, rounds: int) -> Iterable[Row]:
    """Detectable change as stated (median over studies), and how often it is detected."""
    for size in (3, 5, 10, 20):
        groups = [campaigns(random, 2, size, 0.0) for _ in range(rounds)]
        stated = statistics.median(
            detectable_change((size, size), pooled_variation(pair)) for pair in groups
        )
        found = sum(
            compare_seconds(base, slower(new, stated))[1] < SIGNIFICANCE for base, new in groups
        )
        yield f"one campaign, {size} launches each", *power_cells(stated, found, rounds)
    for earlier in (3, 6, 12):
        for ratio in (0.0, 1.0, 3.0):
            studies = [campaigns(random, 2 + earlier, 5, ratio) for _ in range(rounds)]
            stated = statistics.median(stated_between(one) for one in studies[: rounds // 5])
            found = sum(
                compare_seconds(base, slower(new, stated), [statistics.fmean(h) for h in history])[
                    1
                ]
                < SIGNIFICANCE
                for base, new, *history in studies
            )
            name = f"{earlier} earlier campaigns, which vary {ratio:g} times as much as launches"
            yield name, *power_cells(stated, found, rounds)


def stated_between(study: Sequence[list[float]]) -> float:
    """Detectable change that `compare` prints for base, new and earlier campaigns."""
    base, new, *history = study
    spread = pooled_variation([base, new])
    variance = statistics.variance(math.log(statistics.fmean(one)) for one in history)
    noise = spread**2 * statistics.fmean(1.0 / len(one) for one in history)
    sizes = len(base), len(new)
    return detectable_change(sizes, spread, len(history), variance, noise)


def slower(seconds: Sequence[float], change: float) -> list[float]:
    return [value * (1.0 + change) for value in seconds]


def power_cells(stated: float, found: int, rounds: int) -> Row:
    return f"{100 * stated:.1f} %", "80 %", percent(found, rounds)


WARM_UPS: dict[str, Callable[[Values], Values]] = {
    "none": np.ones_like,
    "one slow step, 40 times": lambda k: np.where(k < 1, 40.0, 1.0),
    "level, 3 times slower for 5 steps": lambda k: np.where(k < 5, 3.0, 1.0),
    "two levels": lambda k: np.where(k < 3, 8.0, np.where(k < 10, 1.4, 1.0)),
    "compilation, decay over 2 steps from 20 times": lambda k: 1.0 + 19.0 * np.exp(-k / 2),
    "caches, decay over 5 steps from 2.7 times": lambda k: 1.0 + 1.7 * np.exp(-k / 5),
    "allocator, decay over 12 steps from 1.3 times": lambda k: 1.0 + 0.3 * np.exp(-k / 12),
    "ramp over 10 steps from 1.5 times": lambda k: 1.0 + 0.5 * np.clip(1.0 - k / 10, 0.0, None),
    "clock that falls, 8 steps, from 0.88 times": lambda k: 1.0 - 0.12 * np.exp(-k / 8),
    "grows by 2 % of the first step, never steady": lambda k: 1.0 + 0.02 * k,
}
"""Step times over the steady ones, by step."""


def warm_ups(random: Random, rounds: int) -> Iterable[Row]:
    """Means after the detected warm-up, 20 to 200 steps with 1 or 3 % noise."""
    for name, shape in WARM_UPS.items():
        near = withheld = 0
        for _ in range(rounds):
            steps = np.arange(float(random.integers(20, 201)))
            noise = random.normal(0.0, random.choice([0.01, NOISE]), steps.size)
            seconds = shape(steps) * np.exp(noise)
            state = steady_state(seconds.tolist())
            if state.kind is Steadiness.UNSTABLE:
                withheld += 1
            else:
                near += abs(seconds[state.warmup_steps :].mean() - 1.0) <= 0.05
        wrong = rounds - near - withheld
        yield name, *(percent(one, rounds) for one in (near, withheld, wrong))


def percent(count: int, rounds: int) -> str:
    share = 100.0 * count / rounds
    return f"{share:.1f} %" if 0 < share < 10 else f"{share:.0f} %"


TABLES = {
    "Coverage of 95 % intervals": (
        ("launches", *map(str, SIZES), "stopping rule", "stopped before 30", "warned"),
        coverage,
    ),
    "False positives at the 5 % level": (("launches of each", *map(str, SIZES)), errors),
    "Power": (("comparison", "stated change", "stated power", "simulated power"), power),
    "Means after a warm-up": (
        ("shape", "within 5 %", "not steady, no mean", "off by more"),
        warm_ups,
    ),
}

PAGE = """# Simulated studies

Written by `benchmarks/study_statistics.py --page`; do not edit. {rounds:,} simulated studies per
row, seed {seed}, commit {commit}. Launches of one campaign have a coefficient of variation of 3 %.
The functions are those of studies and `compare`, see [statistics](../explanation/statistics.md).
The standard error of a rate of 5 % is {error:.1f} percentage points.

"""


def markdown(title: str, head: Row, rows: Sequence[Row]) -> str:
    """A table of the page."""
    lines = [head, ("---", *["---:"] * (len(head) - 1)), *rows]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"## {title}\n\n{NOTES.get(title, '')}{table}\n"


NOTES = {
    "Coverage of 95 % intervals": "Coverage of the true value by intervals of a fixed number of "
    "launches, and by the stopping\nrule (half width 2 %, at most 30 launches): coverage, studies "
    "that it stopped before 30 launches,\nand studies with a warning (two modes, or correlated "
    "launches).\n\n",
    "Power": "The stated change is the median over studies of the detectable change that `doctor "
    "--noise` (one\ncampaign) and `compare` (with earlier campaigns of 5 launches) print.\n\n",
    "Means after a warm-up": "20 to 200 steps with noise of 1 or 3 %.\n\n",
}


def main() -> None:
    """Simulate every table."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the tables to FILE")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rounds = 200 if options.quick else 2000
    command = ("git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty")
    commit = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    figures: dict[str, Any] = {"machine": machine(), "rounds": rounds, "commit": commit}
    error = 100.0 * math.sqrt(SIGNIFICANCE * (1.0 - SIGNIFICANCE) / rounds)
    parts = [PAGE.format(rounds=rounds, seed=options.seed, commit=commit, error=error)]
    for number, (title, (head, rows_of)) in enumerate(TABLES.items()):
        random = np.random.default_rng([options.seed, number])
        rows = []
        for row in rows_of(random, rounds):
            print(f"{title}: {row[0]}: {', '.join(row[1:])}", flush=True)
            rows.append(row)
        figures[title] = [dict(zip(head, row, strict=True)) for row in rows]
        parts.append(markdown(title, head, rows))
    if options.page is not None:
        options.page.write_text(parts[0] + "\n".join(parts[1:]), encoding="utf-8")
    finish(figures, options.json)


if __name__ == "__main__":
    main()
