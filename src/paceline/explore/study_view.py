"""A study to walk through: configurations, launches, ranks, phases, layers, trace, as one page.

The same page is served by the explorer and written by ``paceline explore --export``.
"""

import json
import math
from collections.abc import Sequence
from typing import Any

from paceline.analyse.groups import LaunchGroup, grouped
from paceline.analyse.ranking import rank
from paceline.analyse.statistics import mean_step_seconds, throughput
from paceline.explore.page import own_template
from paceline.report.figures import draw, gantt_info
from paceline.report.page import hashed, package_text
from paceline.report.tables.launches import launch_kind
from paceline.step.breakdown import breakdowns
from paceline.step.chrome_trace import chrome_trace
from paceline.store import Launch, Status

MOST_STEPS = 200
"""Steps of a rank that the page shows."""
MOST_COMPARED = 24
"""Configurations of which every pair is tested."""
LARGEST_TRACE = 400_000
"""Characters of a trace that the page carries."""
WIDTH = 860.0


def study_document(name: str, launches: Sequence[Launch]) -> dict[str, Any]:
    """Everything that the page shows, as JSON values; times in seconds."""
    groups = grouped(launches)
    return {
        "study": name,
        "configurations": [_configuration(group) for group in groups],
        "pairs": _pairs(groups),
        "launches": {launch.id: _launch(launch) for launch in launches},
    }


def study_html(document: dict[str, Any], *, back: str = "") -> str:
    """The page of a study; ``back`` is where its explorer is, if there is one."""
    style, script = _style(), own_template("study.js")
    text = own_template("study.html")
    for mark, content in (
        ("/* policy */", study_policy()),
        ("/* style */", style),
        ("/* script */", script),
        ("/* back */", back),
        ("/* study */", json.dumps(document, allow_nan=False).replace("<", "\\u003c")),
    ):
        text = text.replace(mark, content, 1)
    return text


def study_policy() -> str:
    """Nothing but the page's own style and script; it asks nobody for anything."""
    return (
        f"default-src 'none'; style-src {hashed(_style())}; "
        f"script-src {hashed(own_template('study.js'))}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _style() -> str:
    parts = (package_text("page.css"), package_text("figure.css"), own_template("study.css"))
    return "\n".join(parts)


def _configuration(group: LaunchGroup) -> dict[str, Any]:
    rate = group.throughput
    return {
        "words": group.words,
        "processes": group.first.world_size,
        "plain": group.first.instrument == "none",
        "rate": _known(rate.mean),
        "low": _known(rate.low),
        "high": _known(rate.high),
        "step": _known(group.step.mean),
        "launches": [launch.id for launch in group.launches],
    }


def _pairs(groups: Sequence[LaunchGroup]) -> list[dict[str, Any]]:
    """Every pair of plain configurations with its test: different, or not distinguishable."""
    plain = [
        (number, group) for number, group in enumerate(groups) if group.first.instrument == "none"
    ][:MOST_COMPARED]
    if len(plain) < 2:
        return []
    return [
        {
            "faster": int(pair.faster),
            "slower": int(pair.slower),
            "ratio": _known(pair.ratio),
            "low": _known(pair.low),
            "high": _known(pair.high),
            "different": bool(pair.different),
        }
        for pair in rank([(str(number), group) for number, group in plain]).pairs
    ]


def _launch(launch: Launch) -> dict[str, Any]:
    finished = launch.status is Status.FINISHED
    step = launch.outcome.timeline
    phases = {} if step is None else breakdowns(step)
    trace = "" if step is None else chrome_trace(step)
    return {
        "status": str(launch.status),
        "reason": launch.outcome.reason,
        "kind": launch_kind(launch),
        "framework": launch.framework,
        "created": launch.created_at,
        "load": launch.outcome.facts.get("load_before"),
        "rate": _known(throughput(launch)) if finished else None,
        "step": _known(mean_step_seconds(launch)) if finished else None,
        "warmup": launch.warmup_steps,
        "ranks": [
            {
                "rank": own.rank,
                "steps": [_known(value) for value in own.wall_seconds[:MOST_STEPS]],
                "phases": {
                    str(phase): _known(seconds)
                    for phase, seconds in (
                        phases[own.rank].exposed if own.rank in phases else {}
                    ).items()
                },
            }
            for own in launch.outcome.ranks
        ],
        "layers": [
            {
                "name": layer.name,
                "forward": _known(layer.forward_seconds),
                "backward": _known(layer.backward_seconds),
                "bytes": _known(layer.gradient_bytes),
            }
            for layer in launch.outcome.layers
        ],
        "timeline": "" if step is None else draw(gantt_info(step), WIDTH),
        "trace": trace if len(trace) <= LARGEST_TRACE else "",
    }


def _known(value: float) -> float | None:
    """A number with six digits; None where there is none, which JSON cannot say."""
    return float(f"{value:.6g}") if math.isfinite(value) else None
