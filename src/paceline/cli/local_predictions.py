"""Predictions for this machine: from the launches and the profile that the store has."""

from pathlib import Path
from typing import TYPE_CHECKING

from paceline.cli.options import parse_places
from paceline.errors import InputError

if TYPE_CHECKING:
    from paceline.analyse.this_machine import HerePredictions
    from paceline.cli.plan_options import Request


def predictions_here(request: "Request", store_path: Path | None) -> "HerePredictions":
    """Predict processes of this machine (-j 1x2), or nodes like it on a network (--nodes, --link).

    Launches of the same model, batch, framework and precision are the evidence; of a job that
    never ran the profile of the machine is.
    """
    from paceline.analyse.this_machine import predict_here
    from paceline.hardware import catalogue
    from paceline.measurement.probe import current_profile
    from paceline.store import Store, default_store_path

    given = request.values
    if not given["model"]:
        raise InputError(
            "no model to predict", "name one: --model resnet50 ('paceline models' lists all)"
        )
    path = store_path or default_store_path()
    launches, profile = [], None
    if path.exists():
        with Store(path) as store:
            launches, profile = store.launches(), current_profile(store)
    nodes = given["nodes"] or ""
    places = [(count, 1) for _, count in parse_places(nodes)] if nodes else []
    places += parse_places(given["places"]) if given["places"] else []
    return predict_here(
        launches,
        profile,
        lambda: request.workload(1),
        places,
        catalogue.link(given["link_name"]) if given["link_name"] else None,
        model=given["model"],
        batch=given["batch"],
        framework=given["framework"],
        precision=given["precision"],
        sequence=given["sequence"],
    )
