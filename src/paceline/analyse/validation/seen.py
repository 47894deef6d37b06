"""Rows that the fitted constants come from, recognised whatever they are called."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from paceline.analyse.validation.measurement import Configuration, Measurement
from paceline.analyse.validation.reference import reference_table
from paceline.predictor.fitted.effects import Effects
from paceline.predictor.fitted.tables import held_out


def effects_without_group(configuration: Configuration) -> Effects | None:
    """Effects fitted without the row's group; None if they have not seen it.

    The group goes by its name, else by the reference rows in which the same ran. Where those
    are held out apart, the whole source is left out.
    """
    without = held_out()
    if configuration.group in without.folds:
        return without.without_group(configuration.group)
    twins = _reference_twins(configuration)
    if len({without.folds[twin.group] for twin in twins}) > 1:
        return without.without_family(twins[0].family)
    return without.without_group(twins[0].group) if twins else None


def effects_without_family(configuration: Configuration) -> Effects | None:
    """Effects fitted without the row's source, recognised in the same way."""
    without = held_out()
    if configuration.family in without.by_family:
        return without.without_family(configuration.family)
    twins = _reference_twins(configuration)
    return without.without_family(twins[0].family) if twins else None


def seen_rows(measurements: Iterable[Measurement]) -> int:
    """How many rows are of groups that the full fit has seen, under any name."""
    return sum(effects_without_group(row.configuration) is not None for row in measurements)


def _reference_twins(configuration: Configuration) -> list[Configuration]:
    return _reference_by_what_ran().get(_of_any_version(configuration), [])


@lru_cache(maxsize=1)
def _reference_by_what_ran() -> dict[Configuration, list[Configuration]]:
    twins: dict[Configuration, list[Configuration]] = defaultdict(list)
    for row in reference_table().measurements:
        twins[_of_any_version(row.configuration)].append(row.configuration)
    return dict(twins)


def _of_any_version(configuration: Configuration) -> Configuration:
    """What ran, on whichever data and version: a copied row may leave these out."""
    return replace(configuration.what_ran, framework_version="", data="")
