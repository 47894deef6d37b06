"""The requests of ``script/same-predictions`` are valid commands."""

from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

from paceline.cli.next_steps import command_named

SCRIPT = Path(__file__).parents[2] / "script" / "same-predictions"


def requests():
    loader = SourceFileLoader("same_predictions", str(SCRIPT))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module.REQUESTS


@pytest.mark.parametrize("request_text", requests())
def test_every_request_has_options_of_predict(request_text):
    command = command_named("predict")
    assert command.make_context("predict", request_text.split()).params["model"] is not None or (
        "--trace" in request_text
    )
