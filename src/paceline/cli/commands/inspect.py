"""``paceline inspect``: what a model is made of and what a training step of it costs."""

from typing import TYPE_CHECKING

import click

from paceline.cli.output import emit_json, json_option, next_line

if TYPE_CHECKING:
    from paceline.workload.graph import Graph

EXAMPLE = """
\b
Examples:
  paceline inspect resnet50 --batch 32
  paceline inspect gpt2-xl --batch 8 --sequence 1024 --precision bf16
  paceline inspect model.py:make_model --input 32x3x224x224
  paceline inspect model.onnx
  paceline inspect config.json --sequence 2048
"""


@click.command(epilog=EXAMPLE)
@click.argument("model")
@click.option("--batch", type=int, help="Samples per step [default: 32, or that of --input].")
@click.option("--sequence", type=int, help="Tokens per sample [default: as published].")
@click.option("--precision", default="fp32", show_default=True, help="As in amp_fp16, bf16.")
@click.option(
    "--input",
    "input_shapes",
    multiple=True,
    help="Input with the batch first: 32x3x224x224, 8x1024:int64, name=8x16; once per input.",
)
@click.option("--all-layers", is_flag=True, help="A row for every layer instead of every block.")
@json_option
def command(
    model: str,
    batch: int | None,
    sequence: int | None,
    precision: str,
    input_shapes: tuple[str, ...],
    all_layers: bool,
    as_json: bool,
) -> None:
    """Show the layers of MODEL with parameters, FLOP and memory of a training step.

    MODEL is a network that is built in ('paceline models' lists them), a function in a Python
    file that makes a torch module, an ONNX file, or a Hugging Face config.json.
    """
    from paceline.cli.model_target import batch_of, load_model
    from paceline.workload.capture import capture_notes

    graph = load_model(model, input_shapes, sequence)
    samples = batch_of(batch, input_shapes, graph)
    if as_json:
        _print_json(graph, samples, sequence, precision)
        return
    _print_tables(graph, samples, sequence, precision, all_layers)
    for note in capture_notes(graph):
        click.echo(f"note: {note}")
    again = f"paceline inspect {model} --batch {samples}"
    next_line(f"{again} --precision bf16" if all_layers else f"{again} --all-layers")


def _print_json(graph: "Graph", batch: int, sequence: int | None, precision: str) -> None:
    from paceline.cli.model_tables import layer_json
    from paceline.workload.capture import capture_notes, unknown_operations
    from paceline.workload.precision import precision as find_precision

    cost = graph.cost(batch, sequence, precision)
    emit_json(
        "inspect",
        1,
        {
            "model": graph.name,
            "batch": batch,
            "sequence": (sequence or graph.sequence) if graph.uses_sequence else None,
            "precision": find_precision(precision).name,
            "parameters": cost.parameters,
            "trainable_parameters": cost.trainable_parameters,
            "forward_flops": cost.forward_flops,
            "training_flops": cost.training_flops,
            "forward_bytes": cost.forward_bytes,
            "backward_bytes": cost.backward_bytes,
            "activation_bytes": cost.activation_bytes,
            "gradient_bytes": cost.gradient_bytes,
            "unknown_operations": unknown_operations(graph),
            "notes": capture_notes(graph),
            "layers": [layer_json(layer) for layer in cost.layers],
        },
    )


def _print_tables(
    graph: "Graph", batch: int, sequence: int | None, precision: str, all_layers: bool
) -> None:
    from paceline.cli.model_tables import layer_table, totals_text
    from paceline.report.terminal import print_table
    from paceline.workload.precision import precision as find_precision
    from paceline.workload.summary import grouped_layers, single_layers

    cost = graph.cost(batch, sequence, precision)
    groups = single_layers(cost.layers) if all_layers else grouped_layers(cost.layers)
    length = sequence or graph.sequence
    tokens = f" of {length} tokens" if graph.uses_sequence else ""
    name = find_precision(precision).name
    print_table(
        layer_table(f"{graph.name}, one training step: batch {batch}{tokens}, {name}", groups)
    )
    click.echo()
    for line in totals_text(cost):
        click.echo(line)
