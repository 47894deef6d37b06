"""Public functions that run studies: measure, rerun, noise_test, demo."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from paceline.errors import InputError
from paceline.measurement.run_job import DEFAULT_TIMEOUT_SECONDS
from paceline.spec.keywords import with_keywords
from paceline.spec.study_options import SettingOptions
from paceline.study import Study, StudySettings
from paceline.topology import PREDICTED_LINK, PREDICTED_NODES
from paceline.units import plural

if TYPE_CHECKING:
    from paceline.measurement.study_design import Design
    from paceline.measurement.study_runner import Progress
    from paceline.store import Store
    from paceline.study.aa_test import NoiseTest
    from paceline.study.demo_study import DemoResult

OnLaunch = Callable[["Progress"], None]
OnStage = Callable[[str], None]


def _ignore(_: object) -> None:
    """The default of callbacks."""


@with_keywords(SettingOptions)
def measure(
    model: str = StudySettings.model,
    *,
    framework: str | Sequence[str] | None = None,
    name: str | None = None,
    store: Path | str | None = None,
    timeout_seconds: float | None = None,
    port: int | None = None,
    figure: Path | str | None = None,
    on_stage: OnStage = _ignore,
    on_launch: OnLaunch = _ignore,
    **settings: Unpack[SettingOptions],
) -> Study:
    """Measure training throughput over repeated launches in random order.

    ``framework`` is short for ``frameworks``. Several are ranked: with the same weights and data,
    each must first have the parameters and losses of the NumPy reference; those that fail are left
    out. ``figure`` names a file for the ranking. ``timeout_seconds`` is that of each launch
    [``launch_seconds``].
    """
    if framework is not None:
        if "frameworks" in settings:
            raise InputError("framework and frameworks were both given", "give one of them")
        settings["frameworks"] = framework
    return run_measurement(
        Study(model, name=name, store=store, **settings),
        timeout_seconds=timeout_seconds,
        port=port,
        figure=figure,
        on_stage=on_stage,
        on_launch=on_launch,
    )


def run_measurement(
    study: Study,
    *,
    timeout_seconds: float | None = None,
    port: int | None = None,
    extend: bool = False,
    figure: Path | str | None = None,
    on_stage: OnStage = _ignore,
    on_launch: OnLaunch = _ignore,
) -> Study:
    """Run a study; several frameworks of a new study of one model are checked for parity."""
    from paceline.render.figure_files.figure_files import check_figure_path
    from paceline.study.study_result import write_ranking

    settings = study.settings
    compares = settings is not None and settings.compares_frameworks
    if figure is not None:
        check_figure_path(Path(figure))
        if not compares:
            raise InputError("--figure needs several frameworks", "write --framework NAME,NAME")
    if compares:
        assert settings is not None
        settings.design()  # rejects invalid settings before the parity test
        parity = study.prove_parity(
            timeout_seconds or settings.launch_seconds or DEFAULT_TIMEOUT_SECONDS,
            lambda name: on_stage(f"parity: {name}"),
        )
        parity.check_some()
    study.run(timeout_seconds=timeout_seconds, port=port, on_launch=on_launch, extend=extend)
    if figure is not None:
        write_ranking(study, Path(figure))
    return study


def rerun(
    subject: str,
    *,
    launches: int | None = None,
    name: str | None = None,
    timeout_seconds: float | None = None,
    store: Path | str | None = None,
    on_launch: OnLaunch = _ignore,
) -> Study:
    """Repeat the measurements of a study or launch as a new study [STUDY-rerun].

    ``subject`` is the name of a study or a prefix of a launch id; ``launches`` per configuration
    are as before by default (3 for a launch). The same call continues after an interruption.
    """
    from paceline.measurement.study_runner import run_study
    from paceline.store.api import open_store

    with open_store(store) as opened:
        old, design = _repeated(opened, subject, launches)
    new = name or f"{old}-rerun"
    with open_store(store, create=True) as opened:
        run_study(opened, new, design, timeout_seconds, None, on_launch, extend=True)
        return Study.load(new, opened)


@with_keywords(SettingOptions)
def noise_test(
    model: str = StudySettings.model,
    *,
    name: str | None = None,
    store: Path | str | None = None,
    timeout_seconds: float | None = None,
    on_launch: OnLaunch = _ignore,
    **settings: Unpack[SettingOptions],
) -> "NoiseTest":
    """Measure one configuration as two interleaved groups (A/A test).

    Any significant difference of the groups is a false positive. ``launches`` is the number per
    group; the settings must give one configuration.
    """
    from paceline.study.aa_test import noise_of

    settings["launches"] = 2 * settings.get("launches", StudySettings.launches)
    study = Study(model, name=name, store=store, **settings)
    assert study.settings is not None
    if len(list(study.settings.jobs())) != 1:
        raise InputError(
            "the A/A test needs a single configuration",
            "give one topology and one number of threads",
        )
    study.run(timeout_seconds=timeout_seconds, on_launch=on_launch)
    return noise_of(study.name, study.launches)


def demo(
    model: str = StudySettings.model,
    *,
    batch: int = StudySettings.batch,
    launches: int = 3,
    steps: int = 7,
    nodes: Sequence[int] = PREDICTED_NODES,
    link: str = PREDICTED_LINK,
    seed: int = 1,
    out: Path | str = "paceline-demo",
    on_line: OnStage = _ignore,
    on_stage: OnStage = _ignore,
    on_launch: OnLaunch = _ignore,
) -> "DemoResult":
    """Measure, predict and compare on this machine, and write a report to ``out``.

    Trains a small network on one and two processes, predicts two processes without their
    synchronised launches, and predicts ``nodes`` connected by ``link``.
    """
    from paceline.hardware import catalogue
    from paceline.study.demo_study import Demonstration, DemoResult, describe_machine

    network, directory = catalogue.link(link).name, Path(out)
    study = Demonstration(
        model, batch=batch, launches=launches, steps=steps, seed=seed, out=directory
    )
    begun = time.monotonic()
    on_line(describe_machine())
    on_line(f" probe    {study.probe(on_stage)}   {time.monotonic() - begun:.0f} s")
    measuring = time.monotonic()
    study.run(timeout_seconds=DEFAULT_TIMEOUT_SECONDS, on_launch=on_launch)
    ran = f"{model} b={batch}: {plural(len(study.launches), 'launch')} in random order"
    on_line(f" measure  {ran}   {time.monotonic() - measuring:.0f} s")
    analysis = study.analyse(nodes, network)
    report = study.report(directory / "report.html", analysis=analysis)
    return DemoResult(study.name, study.path, analysis, report)


def _repeated(store: "Store", subject: str, launches: int | None) -> "tuple[str, Design]":
    """The study of ``subject``, and the design that repeats it."""
    from paceline.measurement.study_design import Design, job_from_json

    hint = "repeat its command with 'paceline run -- COMMAND'"
    document = store.design(subject)
    if document is not None:
        design = Design.from_json(document)
        if launches is None:
            return subject, design
        return subject, Design.randomised(design.jobs, launches, design.seed)
    if subject in store.studies():
        raise InputError(f"study {subject} was recorded or imported, not measured", hint)
    launch = store.launch(subject)
    if "graph" not in launch.job:
        raise InputError(f"launch {launch.id} was recorded or imported, not measured", hint)
    return launch.study, Design.randomised([job_from_json(launch.job)], launches or 3, 1)
