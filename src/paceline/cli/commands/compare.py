"""``paceline compare``: train one network under several frameworks and rank them."""

from pathlib import Path
from typing import Any

import click

from paceline.cli.echo import echo
from paceline.cli.help_sections import SectionedCommand
from paceline.cli.knob_options import options_of
from paceline.cli.next_steps import next_line, same_job
from paceline.cli.options import (
    figure_option,
    store_option,
    study_keywords,
    study_name_option,
    timeout_seconds,
)
from paceline.cli.output import emit_json, json_option, show, warn, write_figure
from paceline.spec.study_options import FILE_ONLY, StudyOptions

EXAMPLE = """
\b
Examples:
  paceline compare --frameworks torch-ddp,jax --model resnet20 --batch 32 -j 1x1
  paceline compare --frameworks torch-ddp,tensorflow,jax,mxnet --model resnet44 -j 1x1,1x2
"""


@click.command(cls=SectionedCommand, epilog=EXAMPLE)
@click.option(
    "--frameworks",
    metavar="NAME[,NAME]",
    required=True,
    help="Frameworks, comma-separated; see 'paceline frameworks'.",
)
@options_of(StudyOptions, without=(*FILE_ONLY, "frameworks", "instruments", "no_sync"))
@study_name_option
@figure_option(
    "--figure", "Output file of the figure [default: STUDY.svg in the directory of the store]"
)
@store_option
@json_option
def command(frameworks: str, figure: Path | None, as_json: bool, **options: Any) -> None:
    """Train one network under several frameworks and rank them with confidence intervals.

    A parity test comes first: with the same weights and data, each framework must have the same
    parameters and reach the same losses as the NumPy reference (without dropout, on short
    sequences). Frameworks that fail are excluded. Launches run in random order.
    """
    from paceline.analysis import ranking_tables as ranking
    from paceline.analysis.launch_tables import warnings_of
    from paceline.cli.progress import run_with_progress, study_progress
    from paceline.measurement.run_job import DEFAULT_TIMEOUT_SECONDS
    from paceline.naming import file_name
    from paceline.study import Study

    study = Study(**study_keywords(options), frameworks=frameworks)
    seconds = timeout_seconds(options["launch_seconds"]) or DEFAULT_TIMEOUT_SECONDS
    assert study.settings is not None
    study.settings.design()  # rejects invalid settings before the parity test
    with study_progress("parity") as progress:
        parity = study.prove_parity(seconds, lambda name: progress.stage(f"parity: {name}"))
    if not as_json:
        show([ranking.parity_table(parity)])
        warn(ranking.left_out_lines(parity))
    parity.check_some()
    analysis = run_with_progress(study, options["launch_seconds"]).analyse()
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
    echo(f"Figure: {drawn}")
    next_line(same_job("report", study=study.name), same_job("list", study=study.name))
