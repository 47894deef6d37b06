"""Predictions for this machine: from the launches of the same model that the store has."""

from pathlib import Path
from typing import TYPE_CHECKING

from paceline.cli.options import parse_places
from paceline.cli.output import emit_json, next_line
from paceline.errors import InputError

if TYPE_CHECKING:
    from paceline.analyse.comparison import Comparison
    from paceline.cli.plan_options import Request
    from paceline.store import Launch, Store


def predict_here(request: "Request", store_path: Path | None, as_json: bool) -> None:
    """Predict processes of this machine (-j 1x2), or nodes like it on a network (--nodes, --link).

    Needs what calibrating needs: a plain and a layer-timed launch on one process; for several
    processes also some side by side, and a probe.
    """
    from paceline.analyse.comparison import comparisons_json
    from paceline.analyse.groups import grouped
    from paceline.report.study import comparison_table
    from paceline.report.terminal import print_table
    from paceline.store import Store, default_store_path

    model = request.values["model"]
    if not model:
        raise InputError(
            "no model to predict", "name one: --model resnet50 ('paceline models' lists all)"
        )
    path = store_path or default_store_path()
    if not path.exists():
        raise _nothing_known(model)
    with Store(path) as store:
        launches = [one for one in store.launches() if one.model == model]
        if not launches:
            raise _nothing_known(model)
        comparisons = _comparisons(request, store, launches)
    if as_json:
        emit_json("local_prediction", 1, {"comparisons": comparisons_json(comparisons)})
        return
    alone = next(
        group
        for group in grouped(launches)
        if group.first.world_size == 1 and group.first.instrument == "none"
    )
    print_table(comparison_table(alone, comparisons))
    next_line("paceline calibrate", f"paceline explain {launches[-1].study}")


def _nothing_known(model: str) -> InputError:
    return InputError(
        f"no launch of '{model}' on this machine, and no other place is named",
        f"'paceline measure --model {model} -j 1x1,1x2 --instrument none,layers "
        "--unsynchronised' measures it; --cluster NAME predicts elsewhere",
    )


def _comparisons(
    request: "Request", store: "Store", launches: "list[Launch]"
) -> "list[Comparison]":
    from paceline.analyse.calibration import calibrate
    from paceline.analyse.comparison import Comparison, compare_processes
    from paceline.analyse.local_prediction import predict_nodes, predict_processes
    from paceline.hardware import catalogue
    from paceline.measurement.probe import current_profile

    given = request.values
    calibration = calibrate(launches)
    nodes = given["nodes"] or ""
    places = [(count, 1) for _, count in parse_places(nodes)] if nodes else []
    places += parse_places(given["places"]) if given["places"] else []
    if any(count > 1 for count, _ in places):
        if not given["link_name"]:
            raise InputError(
                "several nodes, and no network between them", "name it: --link eth_10g"
            )
        if any(count > 1 and processes > 1 for count, processes in places):
            raise InputError(
                "several processes on each of several nodes were never measured here",
                "one process a node: --nodes 4,8, or a cluster of the catalogue: --cluster NAME",
            )
        link = catalogue.link(given["link_name"])
        return [Comparison(predict_nodes(calibration, link, count)) for count, _ in places]
    profile = current_profile(store)
    if profile is None:
        raise InputError("this machine has no recent profile", "'paceline probe' measures it")
    counts = [processes for _, processes in places if processes > 1] or sorted(
        calibration.colocated
    )
    if not counts:
        raise InputError(
            "no place to predict for",
            "-j 1x2 for processes here (measured --unsynchronised first), or --nodes 4 --link "
            "eth_10g",
        )
    predictions = [predict_processes(calibration, profile, count) for count in counts]
    return compare_processes(predictions, launches)
