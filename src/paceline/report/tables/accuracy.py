"""Accuracy of configurations, and whether more processes lose some, as tables and JSON."""

import math
from typing import Any

from paceline.analyse.accuracy import StudyAccuracy, TrainedGroup
from paceline.report.numbers import Ranged
from paceline.report.table import Column, Table


def accuracy_tables(found: StudyAccuracy) -> list[Table]:
    """What each configuration came to, and each against the fewest processes."""
    return [accuracy_table(found), *([loss_table(found)] if found.losses else [])]


def accuracy_table(found: StudyAccuracy) -> Table:
    """Losses and accuracy after the last epoch, and the time to the target where there is one."""

    def reached(group: TrainedGroup) -> str:
        return f"{group.reached} of {len(group.launches)}"

    timed = (
        [
            (Column(f"to {100 * found.target:g} %", "s"), lambda one: _to_target(one)),
            (Column("reached"), reached),
        ]
        if found.target is not None
        else []
    )
    return Table.of(
        found.groups,
        (Column("configuration"), lambda one: one.words),
        (Column("seeds", decimals=0), lambda one: len(one.launches)),
        (Column("epochs", decimals=0), lambda one: len(one.accuracies)),
        (Column("train loss", decimals=4), lambda one: _known(one.train_losses[-1])),
        (Column("test loss", decimals=4), lambda one: _known(one.test_losses[-1])),
        (
            Column("accuracy", "%", scale=100.0, decimals=2),
            lambda one: Ranged.of(one.accuracies[-1]),
        ),
        *timed,
        title="Accuracy after the last epoch",
        note=f"On {found.test_samples} test samples; 95 % interval over seeds (Student's t). "
        + (
            "Time to accuracy is that of training steps, without evaluation; it has no mean where "
            "a launch did not get there."
            if timed
            else "--target-accuracy, or [accuracy] target in a study file, tells the time to one."
        ),
    )


def loss_table(found: StudyAccuracy) -> Table:
    """Each configuration against the fewest processes: the same within the margin, or not."""
    return Table.of(
        found.losses,
        (Column("configuration"), lambda one: one.words),
        (Column("against"), lambda one: one.base),
        (Column("pairs", decimals=0), lambda one: one.pairs),
        (
            Column("difference", "%", scale=100.0, decimals=2, signed=True),
            lambda one: Ranged(one.difference.difference, *one.interval),
        ),
        (Column("p", decimals=4), lambda one: _known(one.p_value)),
        (Column("accuracy is"), lambda one: one.verdict),
        title=f"No loss of accuracy: within {100 * found.margin:g} % of test samples?",
        note="Launches of one seed are compared in pairs, by two one-sided t tests (TOST) with "
        "90 % intervals; p is corrected for several comparisons (Holm). Below 0.05 the accuracies "
        "are the same within the margin. That no difference was seen would not show it.",
    )


def accuracy_json(found: StudyAccuracy) -> dict[str, Any]:
    """The same for programs; accuracies are parts of one, times seconds."""
    return {
        "target": found.target,
        "margin": found.margin,
        "test_samples": found.test_samples,
        "configurations": [
            {
                "configuration": one.words,
                "seeds": len(one.launches),
                "reached_target": one.reached,
                "seconds_to_target": one.seconds_to_target and one.seconds_to_target.mean,
                "epochs": [
                    {
                        "train_loss": _known(train),
                        "test_loss": _known(test),
                        "test_accuracy": share.mean,
                        "low_95": _known(share.low),
                        "high_95": _known(share.high),
                    }
                    for train, test, share in zip(
                        one.train_losses, one.test_losses, one.accuracies, strict=True
                    )
                ],
            }
            for one in found.groups
        ],
        "losses": [
            {
                "configuration": one.words,
                "against": one.base,
                "pairs": one.pairs,
                "difference": _known(one.difference.difference),
                "low_90": _known(one.interval[0]),
                "high_90": _known(one.interval[1]),
                "p_value": _known(one.p_value),
                "verdict": one.verdict,
            }
            for one in found.losses
        ],
    }


def _to_target(group: TrainedGroup) -> Ranged | None:
    return None if group.seconds_to_target is None else Ranged.of(group.seconds_to_target)


def _known(number: float) -> float | None:
    return number if math.isfinite(number) else None
