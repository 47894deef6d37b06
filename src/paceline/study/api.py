"""Public functions measure, compare, explain, utilisation, calibrate and validate."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from paceline.explanation.explanation_tables import StudyExplanation
from paceline.measurement.run_job import DEFAULT_TIMEOUT_SECONDS
from paceline.spec.keywords import with_keywords
from paceline.spec.study_options import LaunchOptions, SettingOptions
from paceline.store import Store, default_store_path
from paceline.study import Study, StudySettings

if TYPE_CHECKING:
    from paceline.calibration.machine_fit import MachineFit
    from paceline.explanation.utilisation import Utilisation
    from paceline.measurement.study_runner import Progress
    from paceline.parallel_map import Workers
    from paceline.validation.cases import Mode
    from paceline.validation.validation_summary import ModeSummary

_OnLaunch = Callable[["Progress"], None]


@with_keywords(SettingOptions)
def measure(
    model: str = StudySettings.model,
    *,
    framework: str | None = None,
    name: str | None = None,
    store: Path | str | None = None,
    timeout_seconds: float | None = None,
    on_launch: _OnLaunch = lambda progress: None,
    **settings: Unpack[SettingOptions],
) -> Study:
    """Run a study of several launches per configuration, in random order.

    ``framework`` is one of ``frameworks``; several are ranked by `compare`. ``timeout_seconds`` is
    that of each launch [``launch_seconds``].
    """
    if framework is not None:
        settings["frameworks"] = [framework]
    study = Study(model, name=name, store=store, **settings)
    return study.run(timeout_seconds=timeout_seconds, on_launch=on_launch)


@with_keywords(LaunchOptions)
def compare(
    frameworks: str | Sequence[str],
    model: str = StudySettings.model,
    *,
    name: str | None = None,
    store: Path | str | None = None,
    timeout_seconds: float | None = None,
    on_launch: _OnLaunch = lambda progress: None,
    **settings: Unpack[LaunchOptions],
) -> Study:
    """Train one network with several frameworks; ``.analyse().rankings`` ranks them.

    Frameworks that fail the parity check with the reference training are left out.
    """
    study = Study(model, name=name, store=store, frameworks=frameworks, **settings)
    assert study.settings is not None
    limit = timeout_seconds or study.settings.launch_seconds or DEFAULT_TIMEOUT_SECONDS
    study.prove_parity(limit).check_some()
    return study.run(timeout_seconds=timeout_seconds, on_launch=on_launch)


def explain(
    study: Study | str,
    *,
    processes: int | None = None,
    framework: str | None = None,
    store: Path | str | None = None,
) -> StudyExplanation:
    """Causes of the difference between several processes of a study and perfect scaling (s)."""
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
    """Model FLOP utilisation of a study: measured, attainable, predicted, published (0 to 1).

    ``device`` or ``cluster`` names the hardware of the study in the catalogue; by default it is
    this machine as probed.
    """
    from paceline.calibration.machine_evidence import machine_corrections, machine_evidence
    from paceline.errors import InputError
    from paceline.explanation.utilisation import explain_utilisation
    from paceline.hardware.this_machine import machine_cluster
    from paceline.measurement.probe.machine_probe import current_profile
    from paceline.spec.job_options import JobOptions
    from paceline.spec.resolve_cluster import cluster_of

    found = study if isinstance(study, Study) else Study.load(study, store)
    measured = found.explain(processes, framework).measured
    launch = measured.first
    if device is None and cluster is None:
        with found.open() as opened:
            profile = current_profile(opened)
        if profile is None:
            raise InputError(
                "the peak FLOP/s of this machine is unknown",
                "measure it with 'paceline probe', or name another device with --device",
            )
        cluster_here = machine_cluster(profile, launch.world_size // launch.nodes, launch.nodes)
        known, learnt = machine_evidence(profile), machine_corrections(profile)
        return explain_utilisation(measured, cluster_here, known, learnt)
    options: JobOptions = {"nodes": launch.nodes, "processes": launch.world_size // launch.nodes}
    if device is not None:
        options["device"] = device
    return explain_utilisation(measured, cluster_of(cluster, options))


def calibrate(model: str | None = None, *, store: Path | str | None = None) -> "MachineFit":
    """Fit corrections for this machine to its launches of ``model`` [the one with most launches].

    They are stored in the profile of the machine and used by later predictions. SI units.
    """
    from paceline.calibration.machine_fit import fit_machine
    from paceline.measurement.probe.machine_probe import current_profile, save_profile

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

    Errors are relative errors of throughput. ``by`` lists further columns to group by. The
    corrections for a row are fitted without its ``hold_out``: its own ``group``, or all rows with
    the same ``source``, ``generation``, ``framework``, ``model``, ``network`` or ``scale``.
    ``workers`` is a number of processes or the address of a cluster (tcp://host:8786 of Dask,
    ray://host:10001); the scores do not depend on it.
    """
    from paceline.validation.cases import Mode
    from paceline.validation.hold_out import HoldOut
    from paceline.validation.paceline_model import PacelineModel, PhysicsAlone
    from paceline.validation.read_rows import read_tables
    from paceline.validation.reference_data import reference_table
    from paceline.validation.row_filters import attribute_of
    from paceline.validation.run_validation import answered_by_workers
    from paceline.validation.validation_summary import summarise

    table = read_tables(tuple(map(Path, files))) if files else reference_table()
    columns = [attribute_of(name) for name in by]
    scored, null_models = PacelineModel(HoldOut(hold_out)), [PhysicsAlone()]
    rows, summaries = table.measurements, {}
    for mode in map(Mode, modes):
        answered = answered_by_workers(scored, rows, mode, workers, on_row)
        summaries[mode] = summarise(rows, mode, answered, columns, on_row, null_models)
    return summaries
