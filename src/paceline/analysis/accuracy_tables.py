"""Accuracy of configurations and its comparison between numbers of processes: tables, JSON."""

import math
from typing import Any

from paceline.analysis.accuracy import StudyAccuracy, TrainedGroup
from paceline.analysis.effect_tables import format_p_value
from paceline.render.number_format import Ranged
from paceline.render.table import Align, Column, Table


def accuracy_tables(found: StudyAccuracy) -> list[Table]:
    """Accuracy of each configuration, and its comparison with the fewest processes."""
    return [accuracy_table(found), *([loss_table(found)] if found.losses else [])]


def accuracy_table(found: StudyAccuracy) -> Table:
    """Losses and accuracy after the last epoch, and the time to the target if there is one."""

    def reached(group: TrainedGroup) -> str:
        return f"{group.reached} of {len(group.launches)}"

    timed = (
        [
            (Column(f"time to {100 * found.target:g} %", "s"), lambda one: _to_target(one)),
            (Column("reached"), reached),
        ]
        if found.target is not None
        else []
    )
    return Table.of(
        found.groups,
        (Column("configuration"), lambda one: one.configuration),
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
            "Time to accuracy counts training steps without evaluation; it has no mean if a launch "
            "did not reach the target."
            if timed
            else "Set --target-accuracy, or [accuracy] target in a study file, to report the time "
            "to an accuracy."
        ),
    )


def loss_table(found: StudyAccuracy) -> Table:
    """Equivalence test of each configuration with the fewest processes."""
    return Table.of(
        found.losses,
        (Column("configuration"), lambda one: one.configuration),
        (Column("against"), lambda one: one.base),
        (Column("pairs", decimals=0), lambda one: one.pairs),
        (
            Column("difference", "%", scale=100.0, decimals=2, signed=True),
            lambda one: Ranged(one.difference.difference, *one.interval),
        ),
        (Column("p", align=Align.RIGHT), lambda one: format_p_value(one.p_value)),
        (Column("verdict"), lambda one: one.verdict),
        title=f"Equivalence of accuracy (margin: {100 * found.margin:g} % of test samples)",
        note="Launches with the same seed are compared in pairs by two one-sided t tests (TOST), "
        "with 90 % intervals and p-values corrected for multiple comparisons (Holm). p below 0.05: "
        "the accuracies are the same within the margin. A difference that is not significant does "
        "not show equivalence.",
    )


def accuracy_json(found: StudyAccuracy) -> dict[str, Any]:
    """Convert to JSON values: accuracies from 0 to 1, times in seconds."""
    return {
        "target": found.target,
        "margin": found.margin,
        "test_samples": found.test_samples,
        "configurations": [
            {
                "configuration": one.configuration,
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
                "configuration": one.configuration,
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
