"""Panels of the page that are computed on demand: what-ifs, plans, surface, timeline."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from paceline.explore.answers import AskedJob, chosen_values
from paceline.predictor.api import whatif
from paceline.predictor.prediction import Prediction
from paceline.predictor.search.api import advise
from paceline.predictor.sweep.api import sweep
from paceline.render.figures import draw, gantt_info
from paceline.render.figures.gantt import readable_width
from paceline.render.html_page import table_html
from paceline.render.table import Column, Table
from paceline.spec.job_options import JobLists, JobOptions
from paceline.spec.knob import knobs_of
from paceline.step.serialise import chrome_trace

SURFACE_POINTS = 24
WIDE, NARROW = 720.0, 360.0
"""Widths of drawings in pixels."""


def panel(name: str, job: AskedJob) -> dict[str, Any]:
    """One of `PANELS` for a job, as HTML without any text from the browser."""
    return PANELS[name](job)


def _whatif(job: AskedJob) -> dict[str, Any]:
    from paceline.predictor.prediction_tables import whatif_table

    found = whatif(job.model, job.target, **job.keywords())
    tables = [whatif_table(found.changes, kind) for kind in ("resource", "optimisation")]
    return {"html": "".join(map(table_html, tables))}


def _fixed(job: AskedJob) -> dict[str, Any]:
    """Options of workload and cluster, without those that the panel varies."""
    known = knobs_of(JobOptions)
    return {
        name: value
        for name, value in job.options.items()
        if known[name].knob.group in ("Workload", "Cluster")
        and name not in ("batch", "global_batch", "nodes")
    }


def _searched(job: AskedJob) -> dict[str, Any]:
    """As `_fixed`, with properties of the program that all plans share."""
    shared = ("framework", "tuning", "fused_attention", "optimizer_state")
    return {**_fixed(job), **{name: job.options[name] for name in shared if name in job.options}}


def _timeline(job: AskedJob) -> dict[str, Any]:
    step = job.predicted(job.state.nodes).step
    info = gantt_info(step)
    return {
        "wide": draw(info, readable_width(info, WIDE)),
        "narrow": draw(info, readable_width(info, NARROW)),
        "trace": chrome_trace(step),
    }


def _plans(job: AskedJob) -> dict[str, Any]:
    from paceline.predictor.search.advice_tables import advice_table

    state = job.state
    whole = job.batch * max(1, job.cluster.devices // job.replica)
    options = {"global_batch": whole, "nodes": state.nodes, **_searched(job)}
    advised = advise(job.network, job.target, **cast(JobLists, options))
    best = advised.advice.best
    rule = "Fastest first."
    if advised.advice.close > 1:
        rule += f" {advised.advice.close} plans are not distinguishable from it: benchmark them."
    tokens = best[0].prediction.workload.sequence is not None
    return {
        "html": f"<p>{rule}</p>{table_html(advice_table(advised.searches))}",
        "plans": [_plan_point(own.prediction) for own in best],
        "device_bytes": job.cluster.device.memory_bytes,
        "unit": "tokens/s" if tokens else "samples/s",
    }


def _plan_point(prediction: Prediction) -> dict[str, Any]:
    """A plan with the form's values that state it."""
    return {
        "label": prediction.plan.label,
        "options": chosen_values(prediction),
        "throughput": prediction.tokens_per_second or prediction.samples_per_second,
        "memory_bytes": float(prediction.memory.total_bytes),
        "fits": prediction.fits,
    }


def _surface(job: AskedJob) -> dict[str, Any]:
    """Data against model parallelism over batch and link bandwidth."""
    link = job.cluster.require_network().known_bandwidth
    axes = {
        "link": list(link * np.geomspace(1 / 64, 16, SURFACE_POINTS)),
        "batch": sorted({int(b) for b in np.geomspace(1, 512, 14).round()}),
    }
    found = sweep(job.network, job.target, axes, nodes=max(2, job.state.nodes), **_fixed(job))
    ratio = found.seconds["mp"] / found.seconds["dp"]
    return {
        "x": [float(value) for value in found.axes["link"]],
        "y": [float(value) for value in found.axes["batch"]],
        "data_over_model": [[float(cell) for cell in row] for row in ratio.T],
        "here": {"x": float(link), "y": job.batch},
        "crossings": [[each.value for each in row] for row in found.crossings],
    }


def _published(job: AskedJob) -> dict[str, Any]:
    from paceline.explore.published import published_points

    rows = published_points(job.predicted(job.state.nodes))
    table = Table(
        (Column("row"), Column("framework"), Column("devices"), Column("throughput", "samples/s")),
        tuple((r["id"], r["framework"], r["devices"], r["samples_per_second"]) for r in rows),
        title="Published measurements of similar jobs",
        note="Same network, device and numeric width; batch within a factor of 1.5.",
    )
    return {"html": table_html(table) if rows else "<p>No published measurement matches.</p>"}


PANELS: dict[str, Callable[[AskedJob], dict[str, Any]]] = {
    "whatif": _whatif,
    "timeline": _timeline,
    "plans": _plans,
    "surface": _surface,
    "published": _published,
}
"""Panels by name."""
