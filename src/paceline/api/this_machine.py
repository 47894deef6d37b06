"""Predictions for this machine: from the launches and the profile that a store has."""

from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

from paceline.analyse import this_machine
from paceline.analyse.this_machine import HerePredictions
from paceline.api.requests import JobWords, Model, job_words, workload_of
from paceline.errors import InputError
from paceline.hardware import catalogue
from paceline.measurement.probe import current_profile
from paceline.places import Place
from paceline.store import Store, default_store_path


def predict_here(
    model: Model | None,
    places: Sequence[Place] = (),
    *,
    store: Path | None = None,
    **words: Unpack[JobWords],
) -> HerePredictions:
    """Predict processes of this machine, or nodes like it joined by ``link``.

    ``places`` are nodes and processes on each [every number that ran co-located]. Launches of
    the same model, ``batch``, ``framework``, ``precision`` and ``seq`` are the evidence; of a job
    that never ran the profile of the machine is. Further keywords are those of `predict`.
    """
    words = job_words(words)
    if model is None:
        raise InputError(
            "no model to predict", "name one: --model resnet50 ('paceline models' lists all)"
        )
    if words.get("curve") is not None:
        raise InputError(
            "a curve is of ranks on a cluster, and none is named",
            "name where they ran: --cluster FILE.toml or --device NAME -j 2x1",
        )
    path, link = store or default_store_path(), words.get("link")
    launches, profile = [], None
    if path.exists():
        with Store(path, create=False) as opened:
            launches, profile = opened.launches(), current_profile(opened)
    return this_machine.predict_here(
        launches,
        profile,
        lambda: workload_of(model, 1, words),
        places,
        catalogue.link(link) if link else None,
        model=model if isinstance(model, str) else workload_of(model, 1, words).graph.name,
        batch=words.get("batch"),
        framework=words.get("framework"),
        precision=words.get("precision"),
        sequence=words.get("seq"),
    )
