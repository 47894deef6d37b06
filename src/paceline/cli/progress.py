"""Progress of long work on standard error, with an estimate of the time that is left."""

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from paceline.cli.options import timeout_seconds
from paceline.cli.say import say, shown
from paceline.units import format_seconds

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import ProgressColumn, TaskID

    from paceline.measurement.study import Progress
    from paceline.study import Study


class ProgressView(Protocol):
    """Where progress is shown: a bar on a terminal, lines on anything else."""

    def before_launch(self, progress: "Progress") -> None:
        """Show which launch comes next, how many are done, and how long the rest may take."""

    def stage(self, words: str) -> None:
        """Show what is being done where there is nothing to count."""


class _Lines:
    """One line per launch or stage, for logs and pipes."""

    def before_launch(self, progress: "Progress") -> None:
        left = seconds_left(progress)
        estimate = f", about {left:.0f} s left" if left is not None else ""
        number = f"{progress.done + 1}/{progress.total}"
        say(f"  launch {number}: {launch_words(progress)}{estimate}{so_far(progress)}", err=True)

    def stage(self, words: str) -> None:
        say(f"  {words}", err=True)


class _LiveBar:
    """A bar that is redrawn in place and leaves nothing behind."""

    def __init__(self, bar: "Bar", task: "TaskID") -> None:
        self._bar, self._task = bar, task

    def before_launch(self, progress: "Progress") -> None:
        left = seconds_left(progress)
        self._bar.update(
            self._task,
            total=progress.total,
            completed=progress.done,
            description=launch_words(progress),
            left=("" if left is None else f"{left:.0f} s left") + so_far(progress),
        )

    def stage(self, words: str) -> None:
        self._bar.update(self._task, description=words)


@contextmanager
def study_progress(words: str) -> Iterator[ProgressView]:
    """Progress of a study, or of anything with stages, until the block ends."""
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from rich.progress import TextColumn, TimeElapsedColumn

    with _bar(TimeElapsedColumn(), TextColumn("{task.fields[left]}")) as bar:
        yield _LiveBar(bar, bar.add_task(words, total=None, left=""))


def run_with_progress(
    study: "Study",
    timeout: str | None,
    port: int | None = None,
    file: Path | None = None,
) -> "Study":
    """Run a study to its end; one that is interrupted says how to go on.

    One of a ``file`` goes on where it was, also with levels that were added.
    """
    seconds = timeout_seconds(timeout)
    try:
        with study_progress(study.name) as progress:
            return study.run(
                timeout_seconds=seconds,
                port=port,
                on_launch=progress.before_launch,
                extend=file is not None,
            )
    except KeyboardInterrupt:
        words = ["measure", "--resume", study.name]
        if file is not None:
            words = ["study", "run", str(file), "--study", study.name]
        again = shlex.join(["paceline", *words, "--store", str(study.path)])
        say(f"\ncontinue with: {again}", err=True)
        raise


@contextmanager
def rows_progress(words: str) -> Iterator[Callable[[int, int], None]]:
    """Progress over rows, told as (done, total) as often as one likes, until the block ends."""
    if not sys.stderr.isatty():
        say(f"  {words}", err=True)
        yield lambda done, total: None
        return
    from rich.progress import TimeRemainingColumn

    with _bar(TimeRemainingColumn()) as bar:
        task = bar.add_task(words, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _bar(*last: "ProgressColumn") -> "Bar":
    """What is done, a bar, how much of how much, and then the ``last`` columns."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
    )
    console = Console(stderr=True)
    return Progress(*columns, *last, console=console, transient=True, refresh_per_second=4)


def launch_words(progress: "Progress") -> str:
    """The launch that comes next, in a few words."""
    job = progress.job
    kind = "plain" if job.instrument == "none" else f"{job.instrument} timed"
    if job.world_size > 1 and not job.synchronise:
        kind = "co-located"
    processes = f"{job.world_size} process{'es' if job.world_size > 1 else ''}"
    told = ("model", "framework", "processes", "instrument")
    levels = "".join(f", {k} {v}" for k, v in job.factors.items() if k not in told)
    return shown(f"{job.model} under {job.framework}, {processes}, {kind}{levels}")


def so_far(progress: "Progress") -> str:
    """Failures, and how well configurations are known: the least well of them."""
    words = f", {progress.failed} failed" if progress.failed else ""
    if progress.estimates:
        name, (mean, part) = max(progress.estimates.items(), key=lambda one: one[1][1])
        width = f"{100 * part:.1f} %" if part < 1 else "more than 100 %"
        widest = f"{format_seconds(mean)} a step ± {width}"
        words += shown(f"; least known: {name}, {widest}")
    return words


def seconds_left(progress: "Progress") -> float | None:
    """What the launches to come may take, by the mean of those so far; None before the first."""
    known = progress.seconds_so_far
    if not known:
        return None
    return sum(known) / len(known) * (progress.total - progress.done)
