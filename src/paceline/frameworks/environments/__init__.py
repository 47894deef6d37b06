"""Environments of frameworks: one virtual environment each, made from pinned requirements.

The user's own environment is never touched: everything is made below one directory of ours.
"""

from paceline.frameworks.environments.choice import EnvironmentChoice, choose, chosen, forget
from paceline.frameworks.environments.install import install, remove
from paceline.frameworks.environments.place import (
    EnvironmentState,
    State,
    environment_state,
    environments_root,
    installed_python,
    record_verification,
)
from paceline.frameworks.environments.spec import EnvironmentSpec, PipStep

__all__ = [
    "EnvironmentChoice",
    "EnvironmentSpec",
    "EnvironmentState",
    "PipStep",
    "State",
    "choose",
    "chosen",
    "environment_state",
    "environments_root",
    "forget",
    "install",
    "installed_python",
    "record_verification",
    "remove",
]
