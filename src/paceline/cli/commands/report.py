"""``paceline report``: a self-contained HTML report of a study."""

from pathlib import Path

import click

from paceline.cli.next_steps import command_line
from paceline.cli.options import out_option, store_option
from paceline.cli.output import emit, json_option
from paceline.cli.study_arguments import study_argument

EXAMPLE = """
\b
Examples:
  paceline report resnet44-1115-214119
  paceline report resnet44-1115-214119 --figures figures
  paceline report resnet44-1115-214119 --out page.html --nodes 4,16 --link ib_edr_100g
"""


@click.command(epilog=EXAMPLE)
@study_argument()
@out_option("--out", "Output file [default: STUDY.html].")
@click.option(
    "--figures",
    type=click.Path(path_type=Path, file_okay=False),
    help="Also write the figures as SVG, PDF and PNG, and figures.tex with captions.",
)
@click.option(
    "--nodes",
    metavar="N[,N]|N..N",
    default="4,8,16",
    show_default=True,
    help="Numbers of nodes to predict.",
)
@click.option(
    "--link", metavar="NAME", default="eth_10g", show_default=True, help="Network between nodes."
)
@store_option
@json_option
def command(
    study: str,
    out: Path | None,
    figures: Path | None,
    nodes: str,
    link: str,
    store_path: Path | None,
    as_json: bool,
) -> None:
    """Write a self-contained HTML report of a study, structured like a paper.

    Sections: verdict, question, design, environment, results, ranking, scaling, prediction versus
    measurement, step time breakdown, effects, threats to validity, list of launches.
    """
    from paceline.report.api import write_report
    from paceline.topology import parse_counts

    counts = parse_counts(nodes, "nodes", "--nodes")
    found = write_report(study, out=out, figures=figures, nodes=counts, link=link, store=store_path)
    first = ("explain", study) if found.analysis.explanations else ("study", "show", study)
    export = command_line("study", "export", "launches.csv", "--study", study)
    emit(found, as_json, command_line(*first), export)
