"""Predictions for this machine from the launches and profile of a store."""

from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

from paceline.calibration.local_prediction import LocalPredictions, predict_from_launches
from paceline.errors import InputError
from paceline.hardware import catalogue
from paceline.measurement.probe.machine_probe import current_profile
from paceline.spec.job_options import LocalOptions
from paceline.spec.jobs import LOCAL, check_job
from paceline.spec.resolve_model import Model
from paceline.spec.resolve_workload import workload_of
from paceline.store import Store, default_store_path
from paceline.topology import Topology


def predict_local(
    model: Model | None,
    topologies: Sequence[Topology] = (),
    *,
    store: Path | None = None,
    **options: Unpack[LocalOptions],
) -> LocalPredictions:
    """Predict processes of this machine, or nodes like it connected by ``link``.

    ``topologies`` are nodes x processes [every number that ran co-located]. The evidence is
    launches of the same model, ``batch``, ``framework``, ``precision`` and ``seq``, or the
    machine's profile if there are none.
    """
    job = check_job(options, LOCAL, LocalOptions)
    if model is None:
        raise InputError(
            "no model to predict", "use --model NAME ('paceline catalog models' lists all)"
        )
    path, link = store or default_store_path(), job.get("link")
    launches, profile = [], None
    if path.exists():
        with Store(path, create=False) as opened:
            launches, profile = opened.launches(), current_profile(opened)
    return predict_from_launches(
        launches,
        profile,
        lambda: workload_of(model, 1, job),
        topologies,
        catalogue.link(link) if link else None,
        model=model if isinstance(model, str) else workload_of(model, 1, job).graph.name,
        batch=job.get("batch"),
        framework=job.get("framework"),
        precision=job.get("precision"),
        sequence=job.get("seq"),
    )
