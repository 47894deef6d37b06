"""``paceline whatif``: estimate the gain from faster resources or another plan."""

from typing import Any

import click

from paceline.cli.help_sections import SectionedCommand
from paceline.cli.knob_options import options_of
from paceline.cli.next_steps import next_line, same_job, single_values
from paceline.cli.output import emit_json, json_option, show
from paceline.spec.job_options import EvidenceOptions, JobArguments

EXAMPLE = """
\b
Examples:
  paceline whatif --model bert_large --batch 8 --seq 64 --cluster hkbu-v100-pcie -j 8x4
  paceline whatif --model gpt3_6.7b --batch 16 --precision bf16 --cluster dgx-a100 -j 8x8 \\
      --tp 8 --pp 4 --micro-batch 2
"""


@click.command(cls=SectionedCommand, epilog=EXAMPLE)
@options_of(JobArguments, EvidenceOptions)
@json_option
def command(as_json: bool, **options: Any) -> None:
    """Estimate the gain from a resource twice as fast or free, or from another plan.

    A free resource gives the upper bound of any improvement; other plans are predicted in full.
    """
    from paceline.predictor.api import whatif

    found = whatif(**options)
    if as_json:
        emit_json("whatif", 1, found.to_dict())
        return
    show(found.parts())
    next_line(same_job("predict", **single_values(-1), timeline="step.svg"))
