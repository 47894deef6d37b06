"""Hold-outs: which published measurements the corrections for a row may not come from."""

import re
from collections import defaultdict
from dataclasses import replace
from enum import StrEnum
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from paceline.analyse.validation.fitting.linearise import design_of
from paceline.analyse.validation.fitting.mixed_model import Columns, MixedFit, solve
from paceline.analyse.validation.fitting.statements import quantities_of, shipped_statements
from paceline.analyse.validation.measurement import Configuration
from paceline.analyse.validation.reference import reference_table
from paceline.analyse.validation.rows import row_covariates
from paceline.predictor.corrections.covariates import Covariates
from paceline.predictor.corrections.hierarchy import Hierarchy
from paceline.predictor.corrections.model import CorrectionModel
from paceline.predictor.corrections.table import shipped_corrections

FloatArray = npt.NDArray[np.float64]
_SMALL_SCALE = 8
_LARGE = "more than 8 devices"


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
        return _group_of(configuration)
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
    """Networks that are variants of each other: ``resnet50_v1.5`` and ``resnet152``."""
    name = model.removeprefix("se_").removeprefix("bio")
    stem = re.match(r"[a-z]+(?:_xl)?", name)
    family = stem[0] if stem else name
    return {"resnext": "resnet", "megatron": "gpt", "nnunet": "unet"}.get(family, family)


def model_without(hold_out: HoldOut, level: str) -> CorrectionModel:
    """The corrections fitted without the rows of a level."""
    return _without(hold_out, level)


@lru_cache(maxsize=256)
def _without(hold_out: HoldOut, level: str) -> CorrectionModel:
    """One solution each of scaling and of computing, with the deviations of the full fit."""
    shipped = shipped_corrections()
    hierarchies: dict[str, Hierarchy] = {}
    for paired in (True, False):
        problem = _problem(paired)
        kept = np.array([level_of(row, hold_out) != level for row in problem.rows], dtype=float)
        fit = solve(
            problem.columns,
            problem.design,
            problem.response,
            kept * problem.weights,
            problem.start,
            estimates_components=False,
        )
        hierarchies |= _seen_only(fit, problem, kept)
    return replace(shipped, hierarchies={**shipped.hierarchies, **hierarchies})


class Problem:
    """The reference rows as one linear system: with their baselines, or alone."""

    def __init__(self, paired: bool) -> None:
        statements = shipped_statements(paired)
        by_id = reference_table().by_id
        self.rows = [by_id[identifier].configuration for identifier in statements]
        self.covariates = [row_covariates(row) for row in self.rows]
        self.columns = Columns.of(quantities_of(paired), self.covariates)
        self.design, self.response = design_of(
            self.columns, self.covariates, list(statements.values())
        )
        self.weights = row_weights(self.covariates)
        self.start = _start(self.columns, paired)


@lru_cache(maxsize=2)
def _problem(paired: bool) -> Problem:
    return Problem(paired)


def row_weights(rows: list[Covariates]) -> FloatArray:
    """Rows of one program on one device count together as at most so many of a lone row."""
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for row in rows:
        counts[row.work, row.device] += 1
    return np.array([counts[row.work, row.device] ** -0.5 for row in rows])


def _start(columns: Columns, paired: bool) -> MixedFit:
    shipped = shipped_corrections()
    deviations = {
        (quantity.name, factor): deviation
        for quantity in columns.quantities
        for factor, deviation in shipped.hierarchies[quantity.name].deviations.items()
    }
    noise = shipped.rules["known_work" if paired else "cold"].noise
    return MixedFit(columns, np.zeros(0), np.zeros((0, 0)), deviations, noise)


def _seen_only(fit: MixedFit, problem: Problem, kept: FloatArray) -> dict[str, Hierarchy]:
    """The fitted quantities with the levels of rows that were kept: others are unknown."""
    rows = [each for each, count in zip(problem.covariates, kept, strict=True) if count]
    found = {}
    for name, hierarchy in fit.hierarchies().items():
        levels = {
            factor: {
                level: estimate
                for level, estimate in estimates.items()
                if level in {row.level(factor) for row in rows}
            }
            for factor, estimates in hierarchy.levels.items()
        }
        found[name] = replace(hierarchy, levels=levels)
    return found


def _group_of(configuration: Configuration) -> str:
    """The group of the reference row in which the same ran, under any name; else its own."""
    twin = _twins().get(_of_any_version(configuration))
    return configuration.group if twin is None else twin


@lru_cache(maxsize=1)
def _twins() -> dict[Configuration, str]:
    rows = reference_table().measurements
    return {_of_any_version(row.configuration): row.configuration.group for row in reversed(rows)}


def _of_any_version(configuration: Configuration) -> Configuration:
    """What ran, on whichever data and version: a copied row may leave these out."""
    return replace(configuration.what_ran, framework_version="", data="", tuning="")


def is_reference(configuration: Configuration) -> bool:
    """Whether a row, under any name, is among those that were fitted."""
    return _of_any_version(configuration) in _twins()
