"""Jobs of the configurations of a study; invalid ones raise an error."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

from paceline.errors import InputError
from paceline.frameworks.adapter import FrameworkAdapter
from paceline.frameworks.command import check_runnable
from paceline.frameworks.framework_registry import framework, frameworks
from paceline.measurement.job import Job, Optimiser, batch_per_rank
from paceline.measurement.resource_check import check_resources
from paceline.measurement.run_job import launcher_for
from paceline.study.study_settings import StudySettings
from paceline.study.training_data import check_data, data_source, scaled_rate
from paceline.topology import Topology
from paceline.workload import zoo
from paceline.workload.graph import Graph

_DECAY = {"adamw": 0.01}
"""Weight decay by optimizer: that of PyTorch's AdamW, which differs from Adam only by it."""


class _Kind(NamedTuple):
    topology: Topology
    threads: int
    instrument: str
    synchronise: bool


def jobs_of_settings(settings: StudySettings, run_here: bool) -> Iterator[Job]:
    """Jobs of settings without factors; resources of this machine are checked if ``run_here``."""
    graph = zoo.build(settings.model)
    if run_here:
        check_data(settings.data, graph)
    if settings.seq is not None and not graph.uses_sequence:
        raise InputError(f"{graph.name} has no sequence", "omit --seq")
    description = graph.to_json()
    for name in settings.frameworks:
        chosen = framework(name)
        _check_framework(chosen, description, settings)
        for kind in _kinds(settings):
            job = _job(settings, graph, description, name, kind)
            for variant in _in_labs(settings, _emulated(settings, job, graph)):
                starter = launcher_for(chosen, variant)
                if run_here:
                    starter.validate(*kind.topology)
                    memory = settings.memory_bytes
                    check_resources(variant, graph, starter, settings.oversubscribe, memory)
                yield variant


def _check_framework(
    chosen: FrameworkAdapter, graph: dict[str, Any], settings: StudySettings
) -> None:
    check_runnable(chosen)
    if not chosen.claims(graph):
        raise InputError(
            f"{chosen.name} cannot build {graph['name']}",
            "use --framework torch-ddp, which builds every network",
        )
    for option, value, supported in (
        ("optimizer", settings.optimizer, chosen.optimizers),
        ("precision", settings.precision, chosen.precisions),
    ):
        if value not in supported:
            raise InputError(
                f"{chosen.name} does not support --{option} {value}",
                f"use {' or '.join(supported)}",
            )
    if settings.epochs and not chosen.evaluates:
        evaluating = [name for name, one in frameworks().items() if one.evaluates]
        raise InputError(
            f"{chosen.name} does not support training by epochs",
            f"use one of {', '.join(evaluating)}",
        )


def _kinds(settings: StudySettings) -> Iterator[_Kind]:
    for varied in product(settings.processes, settings.threads, settings.instruments):
        yield _Kind(*varied, True)
        if settings.no_sync and varied[0] != (1, 1):
            yield _Kind(*varied, False)


def _job(
    settings: StudySettings, graph: Graph, description: dict[str, Any], name: str, kind: _Kind
) -> Job:
    nodes, each = kind.topology
    processes = nodes * each
    share = batch_per_rank(settings.batch, processes, settings.scaling)
    times = processes if settings.scaling == "weak" else 1
    rate = scaled_rate(settings.learning_rate, settings.learning_rate_rule, times)
    return Job(
        model=graph.name,
        graph=description,
        framework=name,
        batch_per_rank=share,
        world_size=processes,
        nodes=nodes,
        launcher=settings.launcher,
        hosts=settings.hosts,
        launcher_options=settings.launcher_options,
        precision=settings.precision,
        steps=settings.steps,
        warmup_steps=settings.warmup_steps,
        instrument=kind.instrument,
        synchronise=kind.synchronise,
        bucket_bytes=settings.bucket_bytes,
        threads=kind.threads,
        seed=settings.seed,
        sequence=settings.seq or graph.sequence,
        optimiser=Optimiser(
            settings.optimizer, rate, weight_decay=_DECAY.get(settings.optimizer, 0.0)
        ),
        data=data_source(settings.data),
        epochs=settings.epochs,
        resources=settings.resources,
    )


def _emulated(settings: StudySettings, job: Job, graph: Graph) -> Job:
    if not settings.emulate:
        if settings.time_scale != 1:
            raise InputError("--time-scale needs an emulated device", "add --emulate v100")
        return job
    from paceline.calibration.emulation import emulated_device, emulated_job
    from paceline.hardware import catalogue
    from paceline.workload.workload import Workload

    trained = Workload(graph, job.batch_per_rank, job.sequence, job.precision)
    device = emulated_device(catalogue.device(settings.emulate), trained, job.framework)
    return emulated_job(job, device.slower(settings.time_scale))


def _in_labs(settings: StudySettings, job: Job) -> Iterator[Job]:
    """The job in each lab; unchanged without labs."""
    if not settings.labs:
        yield job
    elif settings.launcher not in ("", "lab"):
        raise InputError(
            f"labs need the launcher 'lab' (got '{settings.launcher}')", "omit --launcher"
        )
    for lab in settings.labs:
        options = tuple(part.strip() for part in lab.split("+"))
        if settings.emulate and any(option.startswith("speed") for option in options):
            raise InputError(
                "speed has no effect on an emulated device, which sleeps instead of computing",
                "omit speed from --lab, or emulate a slower device: --emulate k80",
            )
        yield replace(job, launcher="lab", launcher_options=options)
