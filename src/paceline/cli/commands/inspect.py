"""``paceline inspect``: what a model is made of and what a training step of it costs."""

import click

from paceline.cli.next_steps import next_line, same_job
from paceline.cli.options import seq_option
from paceline.cli.output import emit_json, json_option, show

EXAMPLE = """
\b
Examples:
  paceline inspect resnet50 --batch 32
  paceline inspect gpt2-xl --batch 8 --seq 1024 --precision bf16
  paceline inspect model.py:make_model --input 32x3x224x224
  paceline inspect 'unet.py:UNet(3, classes=2)' --input 8x3x256x256
  paceline inspect model.onnx
  paceline inspect config.json --seq 2048
"""


@click.command(epilog=EXAMPLE)
@click.argument("model")
@click.option("--batch", type=int, help="Samples per step [default: 32, or that of --input].")
@seq_option
@click.option(
    "--precision", default="fp32", show_default=True, help="Width of numbers, as in amp_fp16, bf16."
)
@click.option(
    "--input",
    "inputs",
    multiple=True,
    help="Input with the batch first: 32x3x224x224, 8x1024:int64, name=8x16; once per input.",
)
@click.option("--all-layers", is_flag=True, help="A row for every layer instead of every block.")
@json_option
def command(
    model: str,
    batch: int | None,
    seq: int | None,
    precision: str,
    inputs: tuple[str, ...],
    all_layers: bool,
    as_json: bool,
) -> None:
    """Show the layers of MODEL with parameters, FLOP and memory of a training step.

    MODEL is a network that is built in ('paceline models' lists them), a function in a Python
    file that makes a torch module, an ONNX file, or a Hugging Face config.json.
    """
    from paceline.api.models import batch_of, graph_of
    from paceline.report.tables.models import inspected_json, inspected_parts
    from paceline.workload.capture_notes import capture_notes

    graph = graph_of(model, inputs, seq)
    samples = batch_of(batch, inputs, graph)
    if as_json:
        emit_json("inspect", 1, inspected_json(graph, samples, seq, precision))
        return
    show(inspected_parts(graph, samples, seq, precision, all_layers=all_layers))
    show(f"note: {note}" for note in capture_notes(graph))
    further = {"precision": "bf16"} if all_layers else {"all_layers": True}
    next_line(same_job("inspect", **further))
