"""Public functions explain, utilisation and trace."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from paceline.errors import InputError
from paceline.explanation.study_explanation import StudyExplanation, StudyUtilisation

if TYPE_CHECKING:
    from paceline.explanation.trace_result import TraceResult
    from paceline.study import Study


def explain(
    study: "Study | str",
    *,
    processes: int | None = None,
    framework: str | None = None,
    against: str | None = None,
    mfu: bool = False,
    device: str | None = None,
    trials: Sequence[str] = (),
    pairs: int = 3,
    store: Path | str | None = None,
) -> StudyExplanation:
    """Break a measured step down by cause, from the ideal step, and suggest improvements (s).

    ``processes`` [the largest number] and ``framework`` [that of the first finished launch] select
    a configuration. ``against`` is another study, a launch or "predicted": the step is compared
    with it task by task. ``trials`` are remedies, such as ``threads=1``: the command of the study
    is repeated without and with each, in ``pairs`` of launches. With ``mfu`` the model FLOPs
    utilisation is broken down too, of ``device`` [this machine].
    """
    if device is not None and not mfu:
        raise InputError("--device requires --mfu", "add --mfu")
    found = _study(study, store)
    explanation = found.explain(processes, framework)
    difference = found.difference(against, processes, framework) if against else None
    from paceline.explanation.tried_remedy import try_remedy

    tried = tuple(try_remedy(explanation, one, pairs, found.path) for one in trials)
    reached = None
    if mfu:
        reached = utilisation(found, processes=processes, framework=framework, device=device)
    return replace(
        explanation,
        against=against or "",
        difference=difference,
        utilisation=reached,
        tried=tried,
    )


def utilisation(
    study: "Study | str",
    *,
    processes: int | None = None,
    framework: str | None = None,
    device: str | None = None,
    cluster: str | Path | None = None,
    store: Path | str | None = None,
) -> StudyUtilisation:
    """Model FLOP utilisation of a study: measured, attainable, predicted, published (0 to 1).

    ``device`` or ``cluster`` names the hardware of the study in the catalogue; by default it is
    this machine as probed.
    """
    from paceline.calibration.machine_evidence import machine_corrections, machine_evidence
    from paceline.explanation.utilisation import explain_utilisation
    from paceline.hardware.this_machine import machine_cluster
    from paceline.measurement.probe.machine_probe import current_profile
    from paceline.spec.job_options import JobOptions
    from paceline.spec.resolve_cluster import cluster_of

    found = _study(study, store)
    measured = found.explain(processes, framework).measured
    launch = measured.first
    if device is None and cluster is None:
        with found.open() as opened:
            profile = current_profile(opened)
        if profile is None:
            raise InputError(
                "the peak FLOP/s of this machine is unknown",
                "measure it with 'paceline calibrate', or name another device with --device",
            )
        cluster_here = machine_cluster(profile, launch.world_size // launch.nodes, launch.nodes)
        known, learnt = machine_evidence(profile), machine_corrections(profile)
        reached = explain_utilisation(measured, cluster_here, known, learnt)
        return StudyUtilisation(**vars(reached))
    options: JobOptions = {"nodes": launch.nodes, "processes": launch.world_size // launch.nodes}
    if device is not None:
        options["device"] = device
    reached = explain_utilisation(measured, cluster_of(cluster, options))
    return StudyUtilisation(**vars(reached))


def trace(
    files: Sequence[Path | str] | Path | str,
    *,
    program: str | None = None,
    against: Sequence[Path | str] = (),
    out: Path | str | None = None,
    otf2: Path | str | None = None,
    heatmap: Path | str | None = None,
) -> "TraceResult":
    """Break a trace down by phase, find stragglers, and estimate the gain of each fix (s).

    ``files`` are one file, or one per rank: PyTorch profiler, Horovod timeline, other Chrome
    traces, OTF2, or a table of operations. The typical step is compared with that of the files
    ``against``, and written as a Chrome trace to ``out``, as an archive to ``otf2``, and as a
    figure to ``heatmap``.
    """
    from paceline.explanation.trace_analysis import analyse_trace
    from paceline.explanation.trace_result import TraceResult, write_trace_files
    from paceline.step.difference import step_difference

    given = [files] if isinstance(files, Path | str) else list(files)
    found = analyse_trace([Path(file) for file in given], program)
    difference = None
    if against:
        other = analyse_trace([Path(file) for file in against], program)
        difference = step_difference(other.typical, found.typical)
    wanted = {"Chrome trace": out, "OTF2": otf2, "Heat map": heatmap}
    targets = {kind: Path(path) for kind, path in wanted.items() if path is not None}
    write_trace_files(found.typical, targets)
    return TraceResult(**vars(found), difference=difference, files=tuple(targets.items()))


def _study(study: "Study | str", store: Path | str | None) -> "Study":
    from paceline.study import Study

    return study if isinstance(study, Study) else Study.load(study, store)
