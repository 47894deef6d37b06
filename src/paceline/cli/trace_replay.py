"""``paceline predict --trace FILE --nodes 2,4,8 --link eth_10g``: a trace on another network."""

from typing import TYPE_CHECKING

import click

from paceline.cli.options import parse_places
from paceline.cli.output import emit_json, next_line
from paceline.errors import InputError

if TYPE_CHECKING:
    from paceline.cli.plan_options import Request


def predict_trace(request: "Request", as_json: bool) -> None:
    """Replay the trace of the request; compute stays as traced, communication is predicted."""
    from paceline.hardware import Device, catalogue
    from paceline.plan.synchronisation import Synchronisation
    from paceline.predictor.frameworks import framework
    from paceline.predictor.predict import DEFAULT_FRAMEWORK
    from paceline.predictor.replay import replay_on
    from paceline.report.table import Column, Table
    from paceline.report.terminal import print_table

    given = request.values
    text = given["nodes"] or given["places"]
    if not text or not given["link_name"]:
        raise InputError(
            "a trace needs nodes and a network to be replayed on",
            "write --nodes 2,4,8 --link eth_10g, or name a --cluster",
        )
    places = parse_places(text)
    counts = [count for _, count in places] if given["nodes"] else [a * b for a, b in places]
    link = catalogue.link(given["link_name"])
    habits = framework(given["framework"] or DEFAULT_FRAMEWORK)
    library = habits.library(Device("the traced device", "", "gpu", {}))
    synchronisation = request.synchronisation() or habits.synchronisation or Synchronisation()
    trace = request.trace
    assert trace is not None
    for warning in trace.warnings:
        click.echo(f"warning: {warning}", err=True)
    replayed = replay_on(trace, counts, link, synchronisation, library)
    if as_json:
        fields = [
            {
                "workers": one.workers,
                "step_seconds": one.step.seconds,
                "exposed_communication_seconds": one.exposed_seconds,
                "efficiency": one.efficiency,
                "throughput_samples_per_second": one.throughput,
            }
            for one in replayed
        ]
        emit_json("replay", 1, {"trace": trace.label, "link": link.name, "replayed": fields})
        return
    print_table(
        Table(
            (
                Column("workers", decimals=0),
                Column("throughput", "samples/s"),
                Column("efficiency", "%", scale=100, decimals=0),
                Column("step", "ms", scale=1e3),
                Column("exposed comm.", "ms", scale=1e3),
            ),
            tuple(
                (float(r.workers), r.throughput, r.efficiency, r.step.seconds, r.exposed_seconds)
                for r in replayed
            ),
            title=f"{trace.label or given['trace_name']} replayed on {link.name}, "
            f"{synchronisation.policy}, {habits.name}",
            note="Compute times are the trace's; only communication is predicted.",
        )
    )
    next_line(f"paceline predict --trace {given['trace_name']} --help")
