"""measure, compare, explain, calibrate, validate: studies and what follows from them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paceline.measurement.run import DEFAULT_TIMEOUT_SECONDS
from paceline.store import Store, default_store_path
from paceline.study import Study, StudySettings
from paceline.study.explained import StudyExplanation

if TYPE_CHECKING:
    from paceline.analyse.machine_fit import MachineFit
    from paceline.analyse.sharing_out import Workers
    from paceline.analyse.utilisation import Utilisation
    from paceline.analyse.validation.cases import Mode
    from paceline.analyse.validation.summary import ModeSummary
    from paceline.measurement.study import Progress

_Told = Callable[["Progress"], None]


def measure(
    model: str = StudySettings.model,
    *,
    batch: int = StudySettings.batch,
    processes: int | str | Sequence[int | str] = (1,),
    framework: str = "torch-ddp",
    launches: int = StudySettings.launches,
    steps: int = StudySettings.steps,
    name: str | None = None,
    store: Path | str | None = None,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    on_launch: _Told = lambda progress: None,
    **settings: Any,
) -> Study:
    """Train for ``steps`` counted steps, ``launches`` times each, in random order; the study.

    ``batch`` is samples per process; ``processes`` counts on this machine. Further keywords are
    those of `StudySettings`: ``warmup_steps``, ``seed``, ``order``, ``scaling``, ``seq`` (tokens
    per sample), ``precision``, ``threads``, ``instruments``, ``no_sync``, ``bucket_bytes``.
    """
    study = Study(
        model,
        name=name,
        store=store,
        batch=batch,
        processes=processes,
        frameworks=[framework],
        launches=launches,
        steps=steps,
        **settings,
    )
    return study.run(timeout_seconds=timeout_seconds, on_launch=on_launch)


def compare(
    frameworks: str | Sequence[str],
    model: str = StudySettings.model,
    *,
    name: str | None = None,
    store: Path | str | None = None,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    on_launch: _Told = lambda progress: None,
    **settings: Any,
) -> Study:
    """Train one network under several frameworks; ``.analyse().rankings`` says who is faster.

    Frameworks first have to show that they train the same; those that do not are left out.
    Keywords as in `measure`.
    """
    study = Study(model, name=name, store=store, frameworks=frameworks, **settings)
    study.prove_parity(timeout_seconds).check_some()
    return study.run(timeout_seconds=timeout_seconds, on_launch=on_launch)


def explain(
    study: Study | str,
    *,
    processes: int | None = None,
    framework: str | None = None,
    store: Path | str | None = None,
) -> StudyExplanation:
    """Why several processes of a study are slower than perfect scaling, cause by cause (s)."""
    found = study if isinstance(study, Study) else Study.load(study, store)
    return found.explain(processes, framework)


def utilisation(
    study: Study | str,
    *,
    processes: int | None = None,
    framework: str | None = None,
    device: str | None = None,
    cluster: str | Path | None = None,
    store: Path | str | None = None,
) -> "Utilisation":
    """Model FLOP utilisation of a study: reached, attainable, predicted, published (parts of peak).

    ``device`` or ``cluster`` of the catalogue is what it ran on; without them, this machine as it
    was probed.
    """
    from paceline.analyse.machine_evidence import machine_corrections, machine_evidence
    from paceline.analyse.utilisation import explain_utilisation
    from paceline.api.requests import JobWords, cluster_of
    from paceline.errors import InputError
    from paceline.hardware.machine import machine_cluster
    from paceline.measurement.probe import current_profile

    found = study if isinstance(study, Study) else Study.load(study, store)
    measured = found.explain(processes, framework).measured
    launch = measured.first
    if device is None and cluster is None:
        with found.open() as opened:
            profile = current_profile(opened)
        if profile is None:
            raise InputError(
                "the peak of this machine is not known",
                "'paceline probe' measures it; --device NAME says what it ran on elsewhere",
            )
        place = machine_cluster(profile, launch.world_size // launch.nodes, launch.nodes)
        known, learnt = machine_evidence(profile), machine_corrections(profile)
        return explain_utilisation(measured, place, known, learnt)
    words: JobWords = {"nodes": launch.nodes, "processes": launch.world_size // launch.nodes}
    if device is not None:
        words["device"] = device
    return explain_utilisation(measured, cluster_of(cluster, words))


def calibrate(model: str | None = None, *, store: Path | str | None = None) -> "MachineFit":
    """Fit this machine from its own launches of ``model`` [the one with most], in SI units.

    The machine's profile keeps what was learnt, and predictions use it from then on.
    """
    from paceline.analyse.machine_fit import fit_machine
    from paceline.measurement.probe import current_profile, save_profile

    path = Path(store) if store is not None else default_store_path()
    with Store(path, create=False) as opened:
        profile = current_profile(opened)
        fit = fit_machine(opened.launches(), profile, model)
    if profile is not None:
        with Store(path) as opened:
            save_profile(opened, replace(profile, training=fit.training))
    return fit


def validate(
    files: Sequence[Path | str] = (),
    *,
    modes: Sequence[str] = ("baseline", "cold", "layout"),
    by: Sequence[str] = (),
    hold_out: str = "group",
    workers: "Workers" = 1,
    on_row: Callable[[int, int], None] = lambda done, total: None,
) -> "dict[Mode, ModeSummary]":
    """Score predictions on published measurements, or on ``files`` in the same schema.

    Errors are relative, of throughput. ``by`` are further columns to split by; ``hold_out`` is
    what the corrections for a row may not have seen: its own ``group``, or everything of the same
    ``source``, ``generation``, ``framework``, ``model``, ``network`` or ``scale``. Rows are
    predicted by ``workers``: processes, or a cluster by its address (tcp://host:8786 of Dask,
    ray://host:10001); the scores do not depend on it.
    """
    from paceline.analyse.validation.cases import Mode
    from paceline.analyse.validation.hold_out import HoldOut
    from paceline.analyse.validation.product import PacelineModel, PhysicsAlone
    from paceline.analyse.validation.reading import read_tables
    from paceline.analyse.validation.reference import reference_table
    from paceline.analyse.validation.selection import attribute_of
    from paceline.analyse.validation.summary import summarise
    from paceline.analyse.worker_processes import answered_by_workers

    table = read_tables(tuple(map(Path, files))) if files else reference_table()
    columns = [attribute_of(name) for name in by]
    scored, beside = PacelineModel(HoldOut(hold_out)), [PhysicsAlone()]
    rows, summaries = table.measurements, {}
    for mode in map(Mode, modes):
        answered = answered_by_workers(scored, rows, mode, workers, on_row)
        summaries[mode] = summarise(rows, mode, answered, columns, on_row, beside)
    return summaries
