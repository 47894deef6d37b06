"""``paceline compare``: the same training under several frameworks, ranked."""

from pathlib import Path
from typing import Any

import click

from paceline.cli.next_steps import next_line, same_job
from paceline.cli.options import (
    figure_option,
    store_option,
    study_options,
    study_settings,
    timeout_seconds,
    training_options,
    training_settings,
)
from paceline.cli.output import emit_json, json_option, show, warn, write_figure
from paceline.cli.say import say

EXAMPLE = """
\b
Examples:
  paceline compare --frameworks torch-ddp,jax --model resnet20 --batch 32 -j 1x1
  paceline compare --frameworks torch-ddp,tensorflow,jax,mxnet --model resnet44 -j 1x1,1x2
"""


@click.command(epilog=EXAMPLE)
@click.option("--frameworks", required=True, help="Names by commas; see 'paceline frameworks'.")
@study_options
@training_options
@figure_option("--figure", "Where to write the figure [default: STUDY.svg beside the store]")
@store_option
@json_option
def command(frameworks: str, figure: Path | None, as_json: bool, **options: Any) -> None:
    """Train one network under several frameworks and say which are faster, and how surely.

    Parity comes first: from the same weights and data, each framework must have the described
    parameters and come to the losses of the NumPy reference (without dropout, whose masks are
    random, on short sequences). One that does not is left out.
    Launches are interleaved in random order.
    """
    from paceline.cli.progress import run_with_progress, study_progress
    from paceline.naming import file_name
    from paceline.report.tables import ranking
    from paceline.report.tables.launches import warnings_of
    from paceline.study import Study

    study = Study(**study_settings(options), **training_settings(options), frameworks=frameworks)
    seconds = timeout_seconds(options["timeout"])
    assert seconds is not None
    assert study.settings is not None
    study.settings.design()  # what cannot run is refused before parity is proved
    with study_progress("parity") as progress:
        parity = study.prove_parity(seconds, lambda name: progress.stage(f"parity: {name}"))
    if not as_json:
        show([ranking.parity_table(parity)])
        warn(ranking.left_out_lines(parity))
    parity.check_some()
    analysis = run_with_progress(study, options["timeout"]).analyse()
    rankings = analysis.rankings
    drawn = write_figure(
        figure or study.path.parent / f"{file_name(study.name)}.svg",
        ranking.ranking_figure(rankings),
        ranking.ranking_caption(rankings, study.settings.model),
    )
    if as_json:
        document = {
            "study": study.name,
            "model": parity.model,
            "parity": ranking.parity_json(parity),
            "rankings": ranking.rankings_json(rankings),
            "figure": str(drawn),
        }
        emit_json("compare", 1, document)
        return
    show(ranking.ranking_table(count, one) for count, one in rankings.items())
    warn(warnings_of(analysis.launches))
    say(f"Figure: {drawn}")
    next_line(same_job("report", study=study.name), same_job("list", study=study.name))
