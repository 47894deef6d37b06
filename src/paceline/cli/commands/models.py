"""``paceline models``: the networks that are built in."""

import click

from paceline.cli.next_steps import next_line
from paceline.cli.output import emit_json, json_option, show

EXAMPLE = """
\b
Examples:
  paceline models
  paceline models llama
  paceline models --json
"""


@click.command(epilog=EXAMPLE)
@click.argument("search", default="")
@json_option
def command(search: str, as_json: bool) -> None:
    """List the networks that are built in, or those whose name contains SEARCH.

    Any gpt_h{hidden}_l{layers} or bert_h{hidden}_l{layers}, with _a{heads} and _v{vocabulary}
    if wanted, can be named too.
    """
    from paceline.errors import UnknownNameError
    from paceline.naming import nearest
    from paceline.report.tables.models import model_facts, model_table
    from paceline.workload import zoo

    names = zoo.names_like(search)
    if not names:
        near = nearest(search, zoo.names())
        raise UnknownNameError(
            f"no model's name contains '{search}'." + (f" Near: {', '.join(near)}" if near else ""),
            "'paceline models' lists all",
        )
    models = [model_facts(name) for name in names]
    if as_json:
        emit_json("models", 1, {"models": models})
        return
    show([model_table(models)])
    next_line(f"paceline inspect {names[0]} --batch 32")
