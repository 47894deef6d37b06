"""Hold-outs: published rows that corrections and constants for a row are fitted without."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import lru_cache
from zlib import crc32

import numpy as np
import numpy.typing as npt

from paceline.predictor.kernels.efficiency import Efficiency, load_efficiency
from paceline.predictor.uncertainty.correction_model import COLD, KNOWN_WORK, CorrectionModel
from paceline.predictor.uncertainty.correction_table import shipped_corrections
from paceline.predictor.uncertainty.mixed_effects import Hierarchy
from paceline.validation.layouts import fitted_layouts
from paceline.validation.published_row import Configuration, PublishedRow
from paceline.validation.reference_data import layout_table, reference_table
from paceline.validation.refit.linear_problem import Problem
from paceline.validation.refit.statements import (
    quantities_of,
    shipped_statements,
    shipped_step_statements,
)
from paceline.validation.refit.step_constants import step_priors, step_problem
from paceline.validation.row_step_model import row_covariates

_FOLDS = 16
"""Groups are held out in 16 folds, together with copies of their rows in other sources."""
_SMALL_SCALE = 8
_LARGE = "more than 8 devices"
_OWN_SHAPE = re.compile(r"_h\d+_l\d+")


class HoldOut(StrEnum):
    """Rows that are held out when a row is predicted: all rows of the same ..."""

    SOURCE = "source"
    """An unseen program and machine."""
    GENERATION = "generation"
    """An unseen device generation."""
    FRAMEWORK = "framework"
    MODEL = "model"
    """An unseen family of networks."""
    NETWORK = "network"
    """An unseen kind of link, for rows of several devices."""
    SCALE = "scale"
    """More devices than in the fit: fitted on up to 8 devices, predicted beyond."""
    GROUP = "group"
    """Only the row's own table or figure: other rows of the same program are fitted."""


PROTOCOLS = tuple(each for each in HoldOut if each is not HoldOut.GROUP)
"""Hold-outs that match questions of users."""


def level_of(configuration: Configuration, hold_out: HoldOut) -> str:
    """The held-out level of a row; empty if the protocol does not apply to it."""
    if hold_out is HoldOut.GROUP:
        return f"fold {crc32(_group_of(configuration).encode()) % _FOLDS}"
    if hold_out is HoldOut.SOURCE:
        return configuration.family
    if hold_out is HoldOut.SCALE:
        return _LARGE if configuration.devices > _SMALL_SCALE else ""
    covariates = row_covariates(configuration)
    if hold_out is HoldOut.GENERATION:
        return covariates.generation
    if hold_out is HoldOut.FRAMEWORK:
        return covariates.framework
    if hold_out is HoldOut.NETWORK:
        return covariates.link if configuration.devices > 1 else ""
    return model_family(configuration.model)


def model_family(model: str) -> str:
    """Networks that are variants of each other: ``resnet50_v1.5`` and ``resnet152``.

    One that is named by its own shape (``llama_h2048_l16``) is a family of its own.
    """
    if _OWN_SHAPE.search(model):
        return model
    name = model.removeprefix("se_").removeprefix("bio")
    stem = re.match(r"[a-z]+(?:_xl)?", name)
    family = stem[0] if stem else name
    return {"resnext": "resnet", "megatron": "gpt", "nnunet": "unet"}.get(family, family)


@lru_cache(maxsize=1)
def fitted_rows() -> dict[str, PublishedRow]:
    """All rows that corrections are fitted to, by id: reference rows and usable layouts."""
    layouts = fitted_layouts(layout_table().measurements)
    return {row.configuration.id: row for row in (*reference_table().measurements, *layouts)}


@lru_cache(maxsize=256)
def model_without(hold_out: HoldOut, level: str) -> CorrectionModel:
    """Corrections fitted without the rows of a level, with the variances of the full fit."""
    shipped = shipped_corrections()
    hierarchies = dict(shipped.hierarchies)
    for paired in (True, False):
        problem = _shipped_problem(paired)
        longer = 0.0 if paired else predicted_longer(problem.rows, hold_out, level)
        hierarchies |= problem.without(lambda row: level_of(row, hold_out) == level, longer)
    return replace(shipped, hierarchies=hierarchies)


@lru_cache(maxsize=256)
def efficiency_without(hold_out: HoldOut, level: str) -> Efficiency:
    """Kernel constants; those fitted to whole steps are refitted without the rows of a level."""
    shipped = load_efficiency()
    at_hand = shipped.constants()
    moves = _moves_of_constants(hold_out, level)
    return shipped.with_constants(
        {name: at_hand[name] * math.exp(move) for name, move in moves.items()}
    )


def predicted_longer(
    rows: Sequence[Configuration], hold_out: HoldOut, level: str
) -> npt.NDArray[np.float64]:
    """Change of the logarithm of each row's predicted step with these constants.

    It is zero for rows that carry no information on constants because they mostly communicate.
    """
    moves = _moves_of_constants(hold_out, level)
    slopes = {each.id: each.slopes for each in shipped_step_statements()}
    return np.array(
        [
            sum(slopes[row.id][name] * move for name, move in moves.items())
            if row.id in slopes
            else 0.0
            for row in rows
        ]
    )


@lru_cache(maxsize=256)
def _moves_of_constants(hold_out: HoldOut, level: str) -> dict[str, float]:
    """Change of the logarithms of constants without the rows of a level."""
    problem = _step_problem()
    if not any(level_of(row, hold_out) == level for row in problem.rows):
        return {}
    without = problem.without(lambda row: level_of(row, hold_out) == level)
    everything = _constants_of_all_steps()
    return {
        name: without[name].constant.value - everything[name].constant.value
        for name in step_priors()
    }


@lru_cache(maxsize=1)
def _step_problem() -> Problem:
    statements, by_id = shipped_step_statements(), fitted_rows()
    return step_problem([by_id[each.id].configuration for each in statements], statements)


@lru_cache(maxsize=1)
def _constants_of_all_steps() -> dict[str, Hierarchy]:
    return _step_problem().without(lambda row: False)


@lru_cache(maxsize=2)
def _shipped_problem(paired: bool) -> Problem:
    statements, by_id = shipped_statements(paired), fitted_rows()
    shipped = shipped_corrections()
    return Problem(
        quantities_of(paired),
        [by_id[identifier].configuration for identifier in statements],
        list(statements.values()),
        shipped.hierarchies,
        shipped.rules[KNOWN_WORK if paired else COLD].noise,
    )


def _group_of(configuration: Configuration) -> str:
    """The group of the reference row of the same run, under any name; else its own."""
    twin = _twins().get(_of_any_version(configuration))
    return configuration.group if twin is None else twin


@lru_cache(maxsize=1)
def _twins() -> dict[Configuration, str]:
    rows = reversed(fitted_rows().values())
    return {_of_any_version(row.configuration): row.configuration.group for row in rows}


def _of_any_version(configuration: Configuration) -> Configuration:
    """The configuration without data and version, which copied rows may omit."""
    return replace(configuration.what_ran, framework_version="", data="", tuning="")


def is_reference(configuration: Configuration) -> bool:
    """Whether a row, under any name, is among the fitted ones."""
    return _of_any_version(configuration) in _twins()


def reference_rows(measurements: Iterable[PublishedRow]) -> int:
    """Number of rows that are, under any name, among the fitted ones."""
    return sum(is_reference(row.configuration) for row in measurements)
