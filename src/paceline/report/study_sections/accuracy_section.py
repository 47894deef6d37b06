"""The section about accuracy by epoch and by time."""

from itertools import accumulate

from paceline.analysis.accuracy import StudyAccuracy, TrainedGroup
from paceline.analysis.accuracy_tables import accuracy_tables
from paceline.analysis.launch_statistics import every_step_seconds
from paceline.render.figures import LineSeries, LinesInfo, figure
from paceline.render.html_page import Section
from paceline.render.number_format import Ranged

MOST_CURVES = 8


def accuracy_section(found: StudyAccuracy) -> Section:
    """Accuracy of each configuration by epoch and by time, and the effect of more processes."""
    shown = found.groups[:MOST_CURVES]
    curves = [LineSeries(one.configuration, tuple(_by_epoch(one))) for one in shown]
    timed = [LineSeries(one.configuration, tuple(_by_seconds(one))) for one in shown]
    rest = len(found.groups) - len(shown)
    return Section(
        "Accuracy",
        text="Each launch used its own seed; the n-th launches of all configurations have the "
        "same initial weights and the same order of samples.",
        tables=accuracy_tables(found),
        figures=[
            figure(
                "Test accuracy by epoch",
                LinesInfo("epoch", "test accuracy (%)", tuple(curves), unit="%"),
                "Means over seeds with 95 % intervals.",
            ),
            figure(
                "Test accuracy by time",
                LinesInfo("training time (s)", "test accuracy (%)", tuple(timed), unit="%"),
                "Mean time of training steps, without evaluation.",
            ),
        ],
        notes=[f"Figures show {len(shown)} of {len(found.groups)} configurations."] if rest else (),
    )


def _by_epoch(group: TrainedGroup) -> list[tuple[float, Ranged]]:
    return [
        (float(number), Ranged.of(share).scaled(100.0))
        for number, share in enumerate(group.accuracies, start=1)
    ]


def _by_seconds(group: TrainedGroup) -> list[tuple[float, Ranged]]:
    each = [list(accumulate(every_step_seconds(one))) for one in group.launches]
    steps = len(each[0]) // len(group.accuracies)
    return [
        (sum(own[number * steps - 1] for own in each) / len(each), Ranged(100.0 * share.mean))
        for number, share in enumerate(group.accuracies, start=1)
    ]
