"""Progress of long work on standard error, with the time that is left."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class StudyProgress:
    """A bar over the launches of a study; the estimate comes from the launches so far."""

    def __init__(self, bar: Any, task: Any) -> None:
        self._bar, self._task = bar, task

    def before_launch(self, progress: Any) -> None:
        """Show which launch of a `paceline.measure.study.Progress` comes next."""
        job = progress.job
        kind = {"none": "plain"}.get(job.instrument, job.instrument)
        if job.world_size > 1 and not job.synchronise:
            kind += ", not synchronised"
        words = f"{job.world_size} process{'es' if job.world_size > 1 else ''}, {kind}"
        self._bar.update(
            self._task,
            total=progress.total,
            completed=progress.done,
            description=f"{job.model} {words}",
        )

    def stage(self, words: str) -> None:
        """Show what is being done where there is nothing to count."""
        self._bar.update(self._task, description=words)


@contextmanager
def study_progress(words: str) -> Iterator[StudyProgress]:
    """A bar that leaves nothing behind; on a pipe, one line per launch instead."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.progress import TimeRemainingColumn as TimeLeft

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeLeft(),
    )
    with Progress(*columns, console=console, transient=True, refresh_per_second=4) as bar:
        yield StudyProgress(bar, bar.add_task(words, total=None))
