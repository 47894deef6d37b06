"""Progress on standard error, with an estimate of the remaining time."""

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from paceline.cli.echo import echo, escape_controls
from paceline.cli.options import timeout_seconds
from paceline.units import format_seconds, plural

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import ProgressColumn, TaskID

    from paceline.measurement.study_runner import Progress
    from paceline.study import Study


class ProgressView(Protocol):
    """Display of progress: a bar on a terminal, lines otherwise."""

    def before_launch(self, progress: "Progress") -> None:
        """Show the next launch, the number of launches done and the remaining time."""

    def stage(self, text: str) -> None:
        """Show the current stage of work without a count."""


class _Lines:
    """One line per launch or stage, for logs and pipes."""

    def before_launch(self, progress: "Progress") -> None:
        left = seconds_left(progress)
        estimate = f", about {left:.0f} s left" if left is not None else ""
        number = f"{progress.done + 1}/{progress.total}"
        echo(
            f"  launch {number}: {describe_launch(progress)}{estimate}{so_far(progress)}", err=True
        )

    def stage(self, text: str) -> None:
        echo(f"  {text}", err=True)


class _LiveBar:
    """A bar that is redrawn on one line and removed at the end."""

    def __init__(self, bar: "Bar", task: "TaskID") -> None:
        self._bar, self._task = bar, task

    def before_launch(self, progress: "Progress") -> None:
        left = seconds_left(progress)
        self._bar.update(
            self._task,
            total=progress.total,
            completed=progress.done,
            description=describe_launch(progress),
            left=("" if left is None else f"{left:.0f} s left") + so_far(progress),
        )

    def stage(self, text: str) -> None:
        self._bar.update(self._task, description=text)


@contextmanager
def study_progress(text: str) -> Iterator[ProgressView]:
    """Show progress of a study, or of work with stages, until the block ends."""
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from rich.progress import TextColumn, TimeElapsedColumn

    with _bar(TimeElapsedColumn(), TextColumn("{task.fields[left]}")) as bar:
        yield _LiveBar(bar, bar.add_task(text, total=None, left=""))


def run_with_progress(
    study: "Study",
    timeout: str | None,
    port: int | None = None,
    file: Path | None = None,
    figure: Path | None = None,
) -> "Study":
    """Run a study; when interrupted, print the command that continues it.

    A study from a ``file`` continues where it stopped, also with levels that were added.
    """
    from paceline.study.api import run_measurement

    seconds = timeout_seconds(timeout)
    try:
        with study_progress(study.name) as progress:
            return run_measurement(
                study,
                timeout_seconds=seconds,
                port=port,
                figure=figure,
                on_stage=progress.stage,
                on_launch=progress.before_launch,
                extend=file is not None,
            )
    except KeyboardInterrupt:
        arguments = ["measure", "--resume", study.name]
        if file is not None:
            arguments = ["study", "run", str(file), "--study", study.name]
        again = shlex.join(["paceline", *arguments, "--store", str(study.path)])
        echo(f"\ncontinue with: {again}", err=True)
        raise


@contextmanager
def rows_progress(text: str) -> Iterator[Callable[[int, int], None]]:
    """Show progress over rows until the block ends; yields a callback of (done, total)."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.progress import TimeRemainingColumn

    with _bar(TimeRemainingColumn()) as bar:
        task = bar.add_task(text, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _bar(*last: "ProgressColumn") -> "Bar":
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
    )
    console = Console(stderr=True)
    return Progress(*columns, *last, console=console, transient=True, refresh_per_second=4)


def describe_launch(progress: "Progress") -> str:
    """Short description of the next launch."""
    job = progress.job
    kind = "" if job.instrument == "none" else f", {job.instrument} timed"
    if job.world_size > 1 and not job.synchronise:
        kind = ", co-located"
    processes = plural(job.world_size, "process")
    named = ("model", "framework", "processes", "instrument")
    levels = "".join(f", {k} {v}" for k, v in job.factors.items() if k not in named)
    return escape_controls(f"{job.model} under {job.framework}, {processes}{kind}{levels}")


def so_far(progress: "Progress") -> str:
    """Failed launches, and the configuration with the widest interval."""
    text = f", {progress.failed} failed" if progress.failed else ""
    if progress.estimates:
        name, (mean, part) = max(progress.estimates.items(), key=lambda one: one[1][1])
        width = f"{100 * part:.1f} %" if part < 1 else "more than 100 %"
        widest = f"{format_seconds(mean)}/step ± {width}"
        text += escape_controls(f"; widest interval: {name}, {widest}")
    return text


def seconds_left(progress: "Progress") -> float | None:
    """Remaining time by the mean of finished launches; None before the first."""
    known = progress.seconds_so_far
    if not known:
        return None
    return sum(known) / len(known) * (progress.total - progress.done)
