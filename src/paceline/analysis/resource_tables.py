"""Tables of the resource use of launches: cores, memory, network, GPUs, power and cost."""

import statistics
from collections.abc import Sequence
from typing import Any

from paceline.analysis.configurations import LaunchGroup
from paceline.render.table import Column, Table

HOUR = 3600.0


def resource_tables(groups: Sequence[LaunchGroup], node_price: float | None) -> list[Table]:
    """Tables of sampled phases and of energy and cost efficiency; empty without data."""
    rows = [
        (group, phase, used)
        for group in groups
        for phase in ("start", "training")
        if (used := _means(group, phase))
    ]
    tables = [_usage_table(rows)] if rows else []
    priced = [group for group in groups if group.first.instrument == "none"]
    watts = {group.description: used["watts"] for group, phase, used in rows if phase == "training"}
    if priced and (node_price or any(watts.values())):
        tables.append(_efficiency_table(priced, watts, node_price))
    return tables


def _usage_table(rows: Sequence[tuple[LaunchGroup, str, dict[str, Any]]]) -> Table:
    shares = [
        share
        for group, *_ in rows
        for one in group.launches
        if (share := (one.outcome.facts.get("resources") or {}).get("sampler_share")) is not None
    ]
    cost = f" Sampling used at most {100 * max(shares):.2f} % of a core." if shares else ""
    return Table.of(
        rows,
        (Column("configuration"), lambda row: row[0].description),
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
        note="Means over launches, sampled once a second. Memory: peak of all processes together. "
        "Network: bytes received on all interfaces of the machine, including loopback. Power: "
        f"GPUs (NVML) and processors (RAPL), where available.{cost}",
    )


def _efficiency_table(
    groups: Sequence[LaunchGroup], watts: dict[str, float | None], node_price: float | None
) -> Table:
    def per_joule(group: LaunchGroup) -> float | None:
        power = watts.get(group.description)
        return group.throughput.mean / power if power else None

    def per_price(group: LaunchGroup) -> float | None:
        if not node_price:
            return None
        return group.throughput.mean * HOUR / (node_price * group.first.nodes)

    return Table.of(
        groups,
        (Column("configuration"), lambda one: one.description),
        (Column("samples/s"), lambda one: one.throughput.mean),
        (Column("samples per joule"), per_joule),
        (Column("samples per unit of currency"), per_price),
        title="Energy and cost efficiency",
        note="Samples per joule are samples/s per watt."
        + (f" Price of a node: {node_price:g} per hour." if node_price else ""),
    )


def _means(group: LaunchGroup, phase: str) -> dict[str, Any] | None:
    recorded = [
        used
        for one in group.launches
        if (used := (one.outcome.facts.get("resources") or {}).get(phase))
    ]
    if not recorded:
        return None
    found: dict[str, Any] = {}
    for key in recorded[0]:
        values = [one[key] for one in recorded if one.get(key) is not None]
        found[key] = statistics.fmean(values) if values else None
    return found
