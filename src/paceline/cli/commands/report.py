"""``paceline report``: one self-contained HTML page about a study."""

from pathlib import Path

import click

from paceline.cli.options import parse_places, store_option
from paceline.cli.output import emit_json, json_option, next_line

EXAMPLE = """
\b
Examples:
  paceline report resnet44-1115-214119
  paceline report resnet44-1115-214119 --out page.html --nodes 4,16 --link ib_edr_100g
"""


@click.command(epilog=EXAMPLE)
@click.argument("study")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The page [default: STUDY.html].",
)
@click.option("--nodes", default="4,8,16", show_default=True, help="Node counts to predict.")
@click.option("--link", default="eth_10g", show_default=True, help="Network between them.")
@store_option
@json_option
def command(
    study: str, out: Path | None, nodes: str, link: str, store_path: Path | None, as_json: bool
) -> None:
    """Write one self-contained HTML page: results, predictions, waterfall, timelines, launches."""
    from paceline.cli.commands.demo import results_json, study_results
    from paceline.report.files import write_text
    from paceline.report.page import render
    from paceline.report.study import study_page
    from paceline.store import Store, default_store_path

    counts = [count for _, count in parse_places(nodes)]
    with Store(store_path or default_store_path(), create=False) as store:
        results = study_results(store, study, counts, link)
    page = write_text(out or Path(f"{study}.html"), render(study_page(results)))
    if as_json:
        emit_json("report", 1, {**results_json(results), "report": str(page)})
        return
    click.echo(f"Report: {page}")
    next_line(f"paceline explain {study}", f"paceline export launches.csv --study {study}")
