"""The page of a study: configurations, launches, ranks, phases, layers and trace.

The same page is served by the explorer and written by ``paceline explore --export``.
"""

import io
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paceline.analysis.configurations import LaunchGroup, grouped
from paceline.analysis.launch_statistics import mean_step_seconds, throughput
from paceline.analysis.launch_tables import launch_kind
from paceline.analysis.ranking import rank
from paceline.explore.page import own_template
from paceline.render.figures import draw, gantt_info
from paceline.render.files import write_bytes, write_text
from paceline.render.html_page import hashed, package_text
from paceline.step.breakdown import breakdowns
from paceline.step.serialise import chrome_trace
from paceline.store import Launch, Status
from paceline.store.tidy_tables import tidy_rows, to_csv

if TYPE_CHECKING:
    from paceline.study import Study

MOST_STEPS = 200
"""Limit of steps per rank on the page."""
MOST_COMPARED = 24
"""Limit of configurations that are tested pairwise."""
LARGEST_TRACE = 400_000
"""Limit of characters of an embedded trace."""
WIDTH = 860.0
TABLES = ("launches", "steps")
"""Tables that an exported study has as CSV."""


def study_document(name: str, launches: Sequence[Launch]) -> dict[str, Any]:
    """The contents of the page as JSON values; times in seconds."""
    groups = grouped(launches)
    return {
        "study": name,
        "configurations": [_configuration(group) for group in groups],
        "pairs": _pairs(groups),
        "launches": {launch.id: _launch(launch) for launch in launches},
    }


def study_html(document: dict[str, Any], *, back: str = "") -> str:
    """The page of a study; ``back`` is the address of the explorer or report, if any."""
    style, script = _style(), _script()
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
    """Allow only the page's own style and script, and no requests."""
    return (
        f"default-src 'none'; style-src {hashed(_style())}; "
        f"script-src {hashed(_script())}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _script() -> str:
    return "\n".join(map(own_template, ("perfetto.js", "study.js")))


def _style() -> str:
    parts = (package_text("page.css"), package_text("figure.css"), own_template("study.css"))
    return "\n".join(parts)


def _configuration(group: LaunchGroup) -> dict[str, Any]:
    rate = group.throughput
    return {
        "words": group.description,
        "processes": group.first.world_size,
        "plain": group.first.instrument == "none",
        "rate": _known(rate.mean),
        "low": _known(rate.low),
        "high": _known(rate.high),
        "step": _known(group.step.mean),
        "launches": [launch.id for launch in group.launches],
    }


def _pairs(groups: Sequence[LaunchGroup]) -> list[dict[str, Any]]:
    """Pairwise tests of plain configurations: different or not."""
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
    """A number with six digits; None for NaN and infinity, which JSON does not have."""
    return float(f"{value:.6g}") if math.isfinite(value) else None


def export_study(study: "Study", directory: Path) -> list[Path]:
    """Write ``index.html``, ``report.html`` and CSV tables; return the paths."""
    launches = study.launches
    document = study_document(study.name, launches)
    written = [
        write_text(directory / "index.html", study_html(document, back="report.html")),
        study.report(directory / "report.html"),
    ]
    for table in TABLES:
        content = io.BytesIO()
        to_csv(tidy_rows(table, launches), content)
        written.append(write_bytes(directory / f"{table}.csv", content.getvalue()))
    return written
