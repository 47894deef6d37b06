"""Hold-outs: which published measurements corrections and constants for a row may not come from."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import lru_cache
from zlib import crc32

import numpy as np
import numpy.typing as npt

from paceline.analyse.validation.fitting.problem import Problem
from paceline.analyse.validation.fitting.statements import (
    quantities_of,
    shipped_statements,
    shipped_step_statements,
)
from paceline.analyse.validation.fitting.steps import step_priors, step_problem
from paceline.analyse.validation.layouts import usable_layouts
from paceline.analyse.validation.measurement import Configuration, Measurement
from paceline.analyse.validation.reference import layout_table, reference_table
from paceline.analyse.validation.rows import row_covariates
from paceline.predictor.corrections.hierarchy import Hierarchy
from paceline.predictor.corrections.model import COLD, KNOWN_WORK, CorrectionModel
from paceline.predictor.corrections.table import shipped_corrections
from paceline.predictor.efficiency import Efficiency, load_efficiency

_FOLDS = 16
"""Groups are left out by sixteenths, each with its rows and those in which the same ran."""
_SMALL_SCALE = 8
_LARGE = "more than 8 devices"
_OWN_SHAPE = re.compile(r"_h\d+_l\d+")


class HoldOut(StrEnum):
    """What is left out when a row is asked for: everything of the same ..."""

    SOURCE = "source"
    """A program and machine that nobody measured."""
    GENERATION = "generation"
    """A device of a generation that nobody measured."""
    FRAMEWORK = "framework"
    MODEL = "model"
    """A family of networks."""
    NETWORK = "network"
    """A kind of link, for rows of several devices."""
    SCALE = "scale"
    """More devices than anybody measured: fitted on up to 8, asked for more."""
    GROUP = "group"
    """Only the row's own table or figure: others of the same program were measured."""


PROTOCOLS = tuple(each for each in HoldOut if each is not HoldOut.GROUP)
"""The hold-outs that match what users ask."""


def level_of(configuration: Configuration, hold_out: HoldOut) -> str:
    """What of a row is left out; empty where the protocol has no question about it."""
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
def fitted_rows() -> dict[str, Measurement]:
    """Every row that corrections are fitted to, by id: the reference rows and usable layouts."""
    layouts = usable_layouts(layout_table().measurements)
    return {row.configuration.id: row for row in (*reference_table().measurements, *layouts)}


@lru_cache(maxsize=256)
def model_without(hold_out: HoldOut, level: str) -> CorrectionModel:
    """The corrections fitted without the rows of a level, with the deviations of the full fit."""
    shipped = shipped_corrections()
    hierarchies = dict(shipped.hierarchies)
    for paired in (True, False):
        problem = _shipped_problem(paired)
        longer = 0.0 if paired else predicted_longer(problem.rows, hold_out, level)
        hierarchies |= problem.without(lambda row: level_of(row, hold_out) == level, longer)
    return replace(shipped, hierarchies=hierarchies)


@lru_cache(maxsize=256)
def efficiency_without(hold_out: HoldOut, level: str) -> Efficiency:
    """The constants of kernels, those that whole steps teach fitted without the rows of a level."""
    shipped = load_efficiency()
    at_hand = shipped.constants()
    moves = _moves_of_constants(hold_out, level)
    return shipped.with_constants(
        {name: at_hand[name] * math.exp(move) for name, move in moves.items()}
    )


def predicted_longer(
    rows: Sequence[Configuration], hold_out: HoldOut, level: str
) -> npt.NDArray[np.float64]:
    """How much longer each row's step is predicted with these constants, as a logarithm.

    Rows that teach nothing of constants, since they mostly communicate, count as no longer.
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
    """By how much the logarithms of constants change without the rows of a level."""
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
    """The group of the reference row in which the same ran, under any name; else its own."""
    twin = _twins().get(_of_any_version(configuration))
    return configuration.group if twin is None else twin


@lru_cache(maxsize=1)
def _twins() -> dict[Configuration, str]:
    rows = reversed(fitted_rows().values())
    return {_of_any_version(row.configuration): row.configuration.group for row in rows}


def _of_any_version(configuration: Configuration) -> Configuration:
    """What ran, on whichever data and version: a copied row may leave these out."""
    return replace(configuration.what_ran, framework_version="", data="", tuning="")


def is_reference(configuration: Configuration) -> bool:
    """Whether a row, under any name, is among those that were fitted."""
    return _of_any_version(configuration) in _twins()


def reference_rows(measurements: Iterable[Measurement]) -> int:
    """How many rows are, under any name, among those that were fitted."""
    return sum(is_reference(row.configuration) for row in measurements)
