"""Hold-outs: which published measurements the corrections for a row may not come from."""

import re
from collections.abc import Iterable
from dataclasses import replace
from enum import StrEnum
from functools import lru_cache
from zlib import crc32

from paceline.analyse.validation.fitting.problem import Problem
from paceline.analyse.validation.fitting.statements import quantities_of, shipped_statements
from paceline.analyse.validation.layouts import usable_layouts
from paceline.analyse.validation.measurement import Configuration, Measurement
from paceline.analyse.validation.reference import layout_table, reference_table
from paceline.analyse.validation.rows import row_covariates
from paceline.predictor.corrections.model import COLD, KNOWN_WORK, CorrectionModel
from paceline.predictor.corrections.table import shipped_corrections

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
        hierarchies |= problem.without(lambda row: level_of(row, hold_out) == level)
    return replace(shipped, hierarchies=hierarchies)


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
