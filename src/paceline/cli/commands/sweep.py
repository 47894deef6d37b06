"""``paceline sweep``: compare data and model parallelism along axes, with crossovers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import click

from paceline.cli.echo import echo
from paceline.cli.help_sections import SectionedCommand
from paceline.cli.knob_options import options_of
from paceline.cli.next_steps import same_job
from paceline.cli.options import figure_option, out_option, workers_option
from paceline.cli.output import emit, json_option, write_figure
from paceline.spec.job_options import Target
from paceline.spec.search_options import AxisOptions, SweepOptions

EXAMPLE = """
\b
Examples:
  paceline sweep --model alexnet --batch 16 --cluster knl-opa --nodes 8 \\
      --axis link=1gbit..1000gbit:40 --compare dp,mp
  paceline sweep --model vgg16 --cluster hkbu-v100-pcie -j 8x1 \\
      --axis batch=1..64 --axis link=1gbit..100gbit:20 --out table.csv
  paceline sweep --model resnet50 --batch 64 --cluster dgx-1,dgx-a100 --axis nodes=1..64 \\
      --compare dp
"""


@click.command(cls=SectionedCommand, epilog=EXAMPLE)
@options_of(Target, SweepOptions, AxisOptions)
@workers_option
@out_option("--out", "Write all points as CSV.")
@figure_option("--figure", "Draw a sweep of one axis")
@json_option
def command(out: Path | None, figure: Path | None, as_json: bool, **options: Any) -> None:
    """Compare data and model parallelism along one or two axes.

    The axes are batch size, FLOP/s of a device, memory bandwidth, link bandwidth and number of
    nodes; other parameters are those of the workload and the cluster. Both kinds of parallelism
    use the same number of samples per step. Crossovers are solved numerically. Lists of other
    options give one table with a column for each option that varies.
    """
    from paceline.predictor.sweep import SweepComparison
    from paceline.predictor.sweep.api import sweep
    from paceline.predictor.sweep.sweep_tables import sweep_csv, sweep_figure
    from paceline.render.files import write_text

    found = sweep(**options)
    each = [found] if isinstance(found, SweepComparison) else cast(Sequence[SweepComparison], found)
    drawn = None if figure is None else sweep_figure(each)
    if out is not None:
        write_text(out, sweep_csv(each))
    if figure is not None:
        write_figure(figure, drawn)
    for path in (out, figure):
        if path is not None:
            echo(f"Wrote {path}", err=True)
    other = "nodes=2..64" if "nodes" not in each[0].axes else "link=1gbit..100gbit"
    emit(found, as_json, same_job("sweep", drop=("out", "figure"), axes=other))
