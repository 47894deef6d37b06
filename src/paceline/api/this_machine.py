"""Predictions for this machine: from the launches of the same model that a store has."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from paceline.analyse.calibration import Calibration, calibrate
from paceline.analyse.comparison import Comparison, compare_processes
from paceline.analyse.groups import LaunchGroup, grouped
from paceline.analyse.local_prediction import predict_nodes, predict_processes
from paceline.errors import InputError
from paceline.hardware import catalogue
from paceline.measurement.probe import current_profile
from paceline.places import Place
from paceline.store import Launch, Store, default_store_path


@dataclass(frozen=True)
class HerePredictions:
    """Predictions for places like this machine, beside what was measured of them."""

    alone: LaunchGroup
    comparisons: tuple[Comparison, ...]
    study: str


def predict_here(
    model: str | None,
    places: Sequence[Place] = (),
    *,
    link: str | None = None,
    store: Path | None = None,
) -> HerePredictions:
    """Predict processes of this machine, or nodes like it joined by ``link``.

    ``places`` are nodes and processes on each [every number that ran co-located]. Needs what
    calibrating needs: a plain and a layer-timed launch on one process; for several processes
    also some co-located without communication, and a probe.
    """
    if not model:
        raise InputError(
            "no model to predict", "name one: --model resnet50 ('paceline models' lists all)"
        )
    path = store or default_store_path()
    if not path.exists():
        raise _nothing_known(model)
    with Store(path) as opened:
        launches = [one for one in opened.launches() if one.model == model]
        if not launches:
            raise _nothing_known(model)
        calibration = calibrate(launches)
        if any(nodes > 1 for nodes, _ in places):
            found = _nodes(calibration, places, link)
        else:
            found = _processes(calibration, places, opened, launches)
    alone = next(
        group
        for group in grouped(launches)
        if group.first.world_size == 1 and group.first.instrument == "none"
    )
    return HerePredictions(alone, tuple(found), launches[-1].study)


def _nodes(calibration: Calibration, places: Sequence[Place], link: str | None) -> list[Comparison]:
    if not link:
        raise InputError("several nodes, and no network between them", "name it: --link eth_10g")
    if any(nodes > 1 and processes > 1 for nodes, processes in places):
        raise InputError(
            "several processes on each of several nodes were never measured here",
            "one process a node: --nodes 4,8, or a cluster of the catalogue: --cluster NAME",
        )
    network = catalogue.link(link)
    return [Comparison(predict_nodes(calibration, network, nodes)) for nodes, _ in places]


def _processes(
    calibration: Calibration, places: Sequence[Place], store: Store, launches: Sequence[Launch]
) -> list[Comparison]:
    profile = current_profile(store)
    if profile is None:
        raise InputError("this machine has no recent profile", "'paceline probe' measures it")
    asked = [processes for _, processes in places if processes > 1]
    counts = asked or sorted(calibration.colocated)
    if not counts:
        raise InputError(
            "no place to predict for",
            "-j 1x2 for processes here (measured with --no-sync first), or --nodes 4 --link "
            "eth_10g",
        )
    predictions = [predict_processes(calibration, profile, count) for count in counts]
    return compare_processes(predictions, launches)


def _nothing_known(model: str) -> InputError:
    return InputError(
        f"no launch of '{model}' on this machine, and no other place is named",
        f"'paceline measure --model {model} -j 1x1,1x2 --instrument none,layers "
        "--no-sync' measures it; --cluster NAME predicts elsewhere",
    )
