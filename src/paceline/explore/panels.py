"""Parts of the page that are computed when they are opened: what-ifs, plans, surface, timeline."""

from collections.abc import Callable
from typing import Any

import numpy as np

from paceline.api.advice import advise
from paceline.api.predictions import sweep, whatif
from paceline.explore.answers import NARROW, WIDE, AskedJob
from paceline.report.figures import draw, gantt_info
from paceline.report.page import table_html
from paceline.report.table import Column, Table

SURFACE_POINTS = 24


def panel(name: str, job: AskedJob) -> dict[str, Any]:
    """One of `PANELS` for a job: pieces of HTML that hold no text of the browser's."""
    return PANELS[name](job)


def _whatif(job: AskedJob) -> dict[str, Any]:
    from paceline.report.tables.predictions import whatif_table

    found = whatif(job.model, job.state.cluster, nodes=job.state.nodes, **job.words)
    tables = [whatif_table(found.changes, kind) for kind in ("resource", "optimisation")]
    return {"html": "".join(map(table_html, tables))}


def _timeline(job: AskedJob) -> dict[str, Any]:
    info = gantt_info(job.predicted(job.state.nodes).step)
    return {"wide": draw(info, WIDE), "narrow": draw(info, NARROW)}


def _plans(job: AskedJob) -> dict[str, Any]:
    from paceline.report.tables.advice import advice_table

    state = job.state
    words = {
        name: value
        for name, value in job.words.items()
        if name in ("seq", "precision", "link", "processes", "framework", "scale")
    }
    whole = state.batch * max(1, job.cluster.devices // (state.tp * state.pp))
    advised = advise(job.model, state.cluster, global_batch=whole, nodes=state.nodes, **words)
    return {"html": table_html(advice_table(advised.search, advised.advice))}


def _surface(job: AskedJob) -> dict[str, Any]:
    """Where data and where model parallelism is faster, over batch and bandwidth of the link."""
    words = {
        name: value
        for name, value in job.words.items()
        if name in ("seq", "precision", "link", "processes", "scale")
    }
    link = job.cluster.require_network().known_bandwidth
    axes = {
        "link": list(link * np.geomspace(1 / 64, 16, SURFACE_POINTS)),
        "batch": sorted({int(b) for b in np.geomspace(1, 512, 14).round()}),
    }
    found = sweep(job.model, job.state.cluster, axes, nodes=max(2, job.state.nodes), **words)
    ratio = found.seconds["mp"] / found.seconds["dp"]
    return {
        "x": [float(value) for value in found.axes["link"]],
        "y": [float(value) for value in found.axes["batch"]],
        "data_over_model": [[float(cell) for cell in row] for row in ratio.T],
        "here": {"x": float(link), "y": job.state.batch},
        "crossings": [[each.value for each in row] for row in found.crossings],
    }


def _published(job: AskedJob) -> dict[str, Any]:
    from paceline.explore.published import published_points

    rows = published_points(job.predicted(job.state.nodes))
    table = Table(
        (Column("row"), Column("framework"), Column("devices"), Column("throughput", "samples/s")),
        tuple((r["id"], r["framework"], r["devices"], r["samples_per_second"]) for r in rows),
        title="Published measurements of about the same job",
        note="The same network, device and width of numbers, and 2/3 to 3/2 of the batch.",
    )
    return {"html": table_html(table) if rows else "<p>None of this job.</p>"}


PANELS: dict[str, Callable[[AskedJob], dict[str, Any]]] = {
    "whatif": _whatif,
    "timeline": _timeline,
    "plans": _plans,
    "surface": _surface,
    "published": _published,
}
"""Parts of the page by name."""
