"""Environments of frameworks: one virtual environment each, made from pinned requirements.

The user's own environment is never touched: everything is made below one directory of ours.
"""

from paceline.measurement.environments.choice import Choice, choose, chosen, forget
from paceline.measurement.environments.install import install, remove
from paceline.measurement.environments.place import (
    EnvironmentState,
    State,
    environment_state,
    environments_root,
    installed_python,
    record_verification,
)
from paceline.measurement.environments.recipes import RECIPES, Recipe, recipe

__all__ = [
    "RECIPES",
    "Choice",
    "EnvironmentState",
    "Recipe",
    "State",
    "choose",
    "chosen",
    "environment_state",
    "environments_root",
    "forget",
    "install",
    "installed_python",
    "recipe",
    "record_verification",
    "remove",
]
