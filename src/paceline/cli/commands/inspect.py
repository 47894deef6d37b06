"""``paceline inspect``: the layers of a model and the costs of a training step."""

import click

from paceline.cli.next_steps import same_job
from paceline.cli.options import IntegerRange, seq_option
from paceline.cli.output import emit, json_option

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
@click.option(
    "--batch",
    type=IntegerRange(),
    help="Samples per step [default: that of --input, else 32; 1 above 1B parameters].",
)
@seq_option
@click.option(
    "--precision",
    metavar="NAME",
    help="Numeric precision, such as amp_fp16 [default: that of config.json, else fp32].",
)
@click.option(
    "--input",
    "inputs",
    metavar="SHAPE",
    multiple=True,
    help="Input shape, batch first: 32x3x224x224, 8x1024:int64 or name=8x16; repeatable.",
)
@click.option("--all-layers", is_flag=True, help="Show every layer instead of every block.")
@json_option
def command(
    model: str,
    batch: int | None,
    seq: int | None,
    precision: str | None,
    inputs: tuple[str, ...],
    all_layers: bool,
    as_json: bool,
) -> None:
    """Show the layers of MODEL with parameters, FLOPs and memory of a training step.

    MODEL is a built-in model ('paceline catalog models' lists them), a function in a Python file
    that returns a torch module, an ONNX file, or a Hugging Face config.json.
    """
    from paceline.catalog.api import inspect

    found = inspect(
        model, batch=batch, seq=seq, precision=precision, inputs=inputs, all_layers=all_layers
    )
    further = {"precision": "bf16"} if all_layers else {"all_layers": True}
    emit(found, as_json, same_job("inspect", **further))
