"""Which rows are held out together."""

from collections import defaultdict
from collections.abc import Sequence
from zlib import crc32

from paceline.analyse.validation.measurement import Configuration, Measurement

GROUP_FOLDS = 16


def fold_of(group: str) -> int:
    """The fold of a group, by its name."""
    return crc32(group.encode("utf-8")) % GROUP_FOLDS


def ran_in_folds(measurements: Sequence[Measurement]) -> list[set[Configuration]]:
    """What ran in the groups of each fold.

    Holding a fold out leaves out every row in which one of these ran, also those of other
    groups: results that are printed once per network, or in two rounds, tell each other.
    """
    ran: dict[int, set[Configuration]] = defaultdict(set)
    for row in measurements:
        ran[fold_of(row.configuration.group)].add(row.configuration.what_ran)
    return [ran[fold] for fold in range(GROUP_FOLDS)]
