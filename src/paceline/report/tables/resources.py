"""What launches used beside time: cores, memory, network, GPUs, power and money, as a table."""

import statistics
from collections.abc import Sequence
from typing import Any

from paceline.analyse.groups import LaunchGroup
from paceline.report.table import Column, Table

HOUR = 3600.0


def resource_tables(groups: Sequence[LaunchGroup], node_price: float | None) -> list[Table]:
    """One table of all phases that were sampled; none where nothing was, and no price is known."""
    rows = [
        (group, phase, used)
        for group in groups
        for phase in ("start", "training")
        if (used := _means(group, phase))
    ]
    tables = [_used_table(rows)] if rows else []
    priced = [group for group in groups if group.first.instrument == "none"]
    watts = {group.words: used["watts"] for group, phase, used in rows if phase == "training"}
    if priced and (node_price or any(watts.values())):
        tables.append(_worth_table(priced, watts, node_price))
    return tables


def _used_table(rows: Sequence[tuple[LaunchGroup, str, dict[str, Any]]]) -> Table:
    shares = [
        share
        for group, *_ in rows
        for one in group.launches
        if (share := (one.outcome.facts.get("resources") or {}).get("sampler_share")) is not None
    ]
    cost = f" Sampling took {100 * max(shares):.2f} % of a core at most." if shares else ""
    return Table.of(
        rows,
        (Column("configuration"), lambda row: row[0].words),
        (Column("phase"), lambda row: row[1]),
        (Column("time", "s", decimals=1), lambda row: row[2]["seconds"]),
        (Column("cores busy", decimals=2), lambda row: row[2]["cores_busy"]),
        (Column("memory", "MB", scale=1e-6, decimals=0), lambda row: row[2]["memory_bytes"]),
        (
            Column("network", "MB/s", scale=1e-6, decimals=2),
            lambda row: row[2]["network_bytes_per_second"],
        ),
        (Column("GPUs busy", "%", scale=100.0, decimals=0), lambda row: row[2]["gpu_busy"]),
        (Column("power", "W", decimals=1), lambda row: row[2]["watts"]),
        title="Resources",
        note="Means over launches of samples once a second; memory is the most of all processes "
        "together, network what arrived at all interfaces of the machine, loopback among them. "
        f"Power is that of GPUs (NVML) and processors (RAPL), as far as they tell.{cost}",
    )


def _worth_table(
    groups: Sequence[LaunchGroup], watts: dict[str, float | None], node_price: float | None
) -> Table:
    def per_joule(group: LaunchGroup) -> float | None:
        power = watts.get(group.words)
        return group.throughput.mean / power if power else None

    def per_price(group: LaunchGroup) -> float | None:
        if not node_price:
            return None
        return group.throughput.mean * HOUR / (node_price * group.first.nodes)

    return Table.of(
        groups,
        (Column("configuration"), lambda one: one.words),
        (Column("samples/s"), lambda one: one.throughput.mean),
        (Column("samples per joule"), per_joule),
        (Column("samples per unit of money"), per_price),
        title="Throughput per watt and per price",
        note="Samples per joule are samples/s per watt."
        + (f" A node costs {node_price:g} an hour." if node_price else ""),
    )


def _means(group: LaunchGroup, phase: str) -> dict[str, Any] | None:
    """Means over the launches that tell a phase."""
    told = [
        used
        for one in group.launches
        if (used := (one.outcome.facts.get("resources") or {}).get(phase))
    ]
    if not told:
        return None
    found: dict[str, Any] = {}
    for key in told[0]:
        values = [one[key] for one in told if one.get(key) is not None]
        found[key] = statistics.fmean(values) if values else None
    return found
