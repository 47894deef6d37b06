"""``paceline models``: list the built-in models."""

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
@click.argument("search", default="", metavar="[SEARCH]")
@json_option
def command(search: str, as_json: bool) -> None:
    """List the built-in models, or those whose name contains SEARCH.

    Transformers of any size are available as gpt_h{hidden}_l{layers} and
    bert_h{hidden}_l{layers}, optionally followed by _a{heads} and _v{vocabulary}.
    """
    from paceline.catalog.model_tables import model_facts, model_table
    from paceline.errors import UnknownNameError
    from paceline.naming import did_you_mean
    from paceline.workload import zoo

    names = zoo.names_like(search)
    if not names:
        raise UnknownNameError(
            f"no model name contains '{search}'.{did_you_mean(search, zoo.names())}",
            "run 'paceline models' for a list",
        )
    models = [model_facts(name) for name in names]
    if as_json:
        emit_json("models", 1, {"models": models})
        return
    show([model_table(models)])
    next_line(f"paceline inspect {names[0]} --batch 32")
