"""``paceline report``: a self-contained HTML report of a study."""

from pathlib import Path

import click

from paceline.cli.echo import echo
from paceline.cli.next_steps import next_line, same_job
from paceline.cli.options import out_option, store_option
from paceline.cli.output import emit_json, json_option
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
    from paceline.naming import file_name
    from paceline.report.study_json import study_json
    from paceline.study import Study
    from paceline.topology import parse_counts
    from paceline.units import plural

    counts = parse_counts(nodes, "nodes", "--nodes")
    found = Study.load(study, store_path)
    analysis = found.analyse(counts, link)
    page = found.report(out or Path(f"{file_name(study)}.html"), analysis=analysis)
    drawn = found.figures(figures, analysis=analysis) if figures is not None else []
    if as_json:
        written = {"report": str(page), "figures": [str(path) for path in drawn]}
        emit_json("report", 1, {**study_json(analysis), **written})
        return
    echo(f"Report: {page}")
    if drawn:
        echo(f"Figures: {plural(len(drawn) - 1, 'file')} in {figures}, captions in figures.tex")
    first = "explain" if analysis.explanations else "list"
    next_line(same_job(first), same_job("export", path="launches.csv"))
