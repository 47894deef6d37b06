"""Tables, figure and JSON of a comparison of frameworks: parity and ranking."""

from collections.abc import Mapping
from typing import Any

from paceline.analysis.parity_result import ParityTable
from paceline.analysis.ranking import Ranking
from paceline.render.figures.bars import BarSeries, BarsInfo
from paceline.render.number_format import Ranged
from paceline.render.table import Column, Table
from paceline.units import plural

MOST_TIED = 4
"""Maximum number of names in one cell."""


def parity_table(parity: ParityTable) -> Table:
    """Parameters and losses of each framework, compared with the reference."""
    note = (
        f"Difference: the largest relative difference of {len(parity.losses)} losses from "
        f"{parity.reference}. Expected parameters: {parity.parameters}."
    )
    if parity.without_dropout:
        note += " Trained without dropout, whose masks differ between frameworks."
    return Table.of(
        parity.rows,
        (Column("framework"), lambda row: row.framework),
        (Column("parameters", decimals=0), lambda row: row.parameters),
        (Column("first loss", decimals=6), lambda row: row.losses[0] if row.losses else None),
        (Column("last loss", decimals=6), lambda row: row.losses[-1] if row.losses else None),
        (Column("difference"), lambda row: f"{row.difference:.0e}" if row.losses else "-"),
        (Column("parity"), lambda row: "no" if row.reason else "yes"),
        title=f"Parity on {parity.model}",
        note=note,
    )


def left_out_lines(parity: ParityTable) -> list[str]:
    """Frameworks that failed the parity check, with the reason."""
    return [f"left out: {row.framework}: {row.reason}" for row in parity.rows if row.reason]


def ranking_table(processes: int, ranking: Ranking) -> Table:
    """Frameworks from fastest to slowest for one number of processes."""
    best = ranking.groups[0].throughput.mean
    return Table.of(
        zip(ranking.names, ranking.groups, strict=True),
        (Column("rank", decimals=0), lambda one: ranking.rank_of(one[0])),
        (Column("framework"), lambda one: one[0]),
        (Column("throughput", "samples/s"), lambda one: Ranged.of(one[1].throughput)),
        (Column("step", "ms", scale=1e3), lambda one: Ranged.of(one[1].step)),
        (Column("cores used", decimals=2), lambda one: one[1].cores_used),
        (Column("fraction of best", decimals=2), lambda one: one[1].throughput.mean / best),
        (Column("tied with"), lambda one: _describe_ties(ranking, one[0])),
        title=plural(processes, "process"),
        note="± or [low, high] is the 95 % interval over launches. Tied: no significant difference "
        "in t tests over launches (5 %, Holm's correction). Rank: 1 plus the number of "
        "significantly faster frameworks. Cores used: CPU time over wall time of the busiest "
        "process.",
    )


def _describe_ties(ranking: Ranking, name: str) -> str:
    tied = list(ranking.tied_with(name))
    if len(tied) <= MOST_TIED:
        return ", ".join(tied) or "none"
    if len(tied) == len(ranking.names) - 1:
        return f"all {len(tied)} others"
    return f"{', '.join(tied[: MOST_TIED - 1])} and {len(tied) - MOST_TIED + 1} more"


def ranking_figure(rankings: Mapping[int, Ranking]) -> BarsInfo:
    """Throughput of every framework, a bar for each number of processes."""
    names = list(dict.fromkeys(name for ranking in rankings.values() for name in ranking.names))
    series = []
    for processes, ranking in rankings.items():
        found = dict(zip(ranking.names, ranking.groups, strict=True))
        values = [Ranged.of(found[name].throughput) if name in found else None for name in names]
        series.append(BarSeries(plural(processes, "process"), tuple(values)))
    return BarsInfo("throughput (samples/s)", tuple(names), tuple(series), "samples/s")


def ranking_caption(rankings: Mapping[int, Ranking], model: str) -> str:
    launches = sorted({len(g.launches) for one in rankings.values() for g in one.groups})
    counted = str(launches[0]) if len(launches) == 1 else f"{launches[0]} to {launches[-1]}"
    return (
        f"Throughput of {model} by framework; bars: means over {counted} launches, "
        "lines: 95 % intervals."
    )


def parity_json(parity: ParityTable) -> dict[str, Any]:
    return {
        "reference": parity.reference,
        "reference_losses": list(parity.losses),
        "without_dropout": parity.without_dropout,
        "frameworks": [
            {
                "name": row.framework,
                "parameters": row.parameters,
                "losses": list(row.losses),
                "largest_relative_difference": row.difference,
                "same": not row.reason,
                "reason": row.reason,
            }
            for row in parity.rows
        ],
    }


def rankings_json(rankings: Mapping[int, Ranking]) -> list[dict[str, Any]]:
    """Rankings by number of processes as JSON values, with every pair's test."""
    return [
        {
            "processes": processes,
            "frameworks": [
                {
                    "name": name,
                    "rank": ranking.rank_of(name),
                    "launches": group.throughput.launches,
                    "throughput_samples_per_second": group.throughput.mean,
                    "throughput_low_samples_per_second": group.throughput.low,
                    "throughput_high_samples_per_second": group.throughput.high,
                    "step_seconds": group.step.mean,
                    "tied_with": ranking.tied_with(name),
                }
                for name, group in zip(ranking.names, ranking.groups, strict=True)
            ],
            "pairs": [
                {
                    "faster": pair.faster,
                    "slower": pair.slower,
                    "ratio": pair.ratio,
                    "ratio_low": pair.low,
                    "ratio_high": pair.high,
                    "p_value": pair.p_value,
                    "corrected_p_value": pair.corrected_p,
                    "different": pair.different,
                    "same_within_5_percent": pair.same,
                }
                for pair in ranking.pairs
            ],
        }
        for processes, ranking in rankings.items()
    ]
