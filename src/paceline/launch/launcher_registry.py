"""Launchers by name: built-in ones, imported on first use, and those of plug-ins."""

import os
from functools import cache
from importlib import import_module
from pathlib import Path

from paceline.errors import InputError
from paceline.launch.launcher import Launcher, LaunchSettings
from paceline.launch.local import LocalLauncher
from paceline.located_toml import read_toml
from paceline.naming import look_up
from paceline.plugins import PluginKind, with_plugins

DEFAULT_LAUNCHER = LocalLauncher.name
SITE = "PACELINE_SITE"
"""Environment variable with the path of a file that administrators write for their site."""

BUILT_IN = {
    "local": "local.LocalLauncher",
    "lab": "lab_launcher.LabLauncher",
    "ssh": "ssh.SshLauncher",
    "torchrun": "torchrun.TorchrunLauncher",
    "mpiexec": "mpiexec.MpiexecLauncher",
    "slurm": "slurm.SlurmLauncher",
    "kubeflow": "kubeflow.KubeflowLauncher",
    "skypilot": "skypilot.SkypilotLauncher",
    "dstack": "dstack.DstackLauncher",
}
"""MODULE.CLASS of this package, by the name of the launcher."""


def launchers() -> dict[str, Launcher]:
    return {name: _launcher(one) for name, one in _known().items()}


def our_launchers() -> dict[str, Launcher]:
    return {name: _built_in(path) for name, path in BUILT_IN.items()}


def launcher(name: str, settings: LaunchSettings | None = None) -> Launcher:
    """Return a launcher with the user's settings; an unknown name raises with a suggestion.

    Options that the user did not set are those of the site.
    """
    known = _known()
    found = _launcher(look_up("launcher", name, known, f"choose one of {', '.join(known)}"))
    if settings is None:
        return found
    options = {**site_options(name), **settings.options}
    return found.configured(LaunchSettings(settings.hosts, options))


def site_options(name: str) -> dict[str, str]:
    """Return the options of a launcher in the file ``PACELINE_SITE``: one table per launcher."""
    file = os.environ.get(SITE, "")
    if not file:
        return {}
    tables = read_toml(Path(file)).tables()
    for other in tables:
        look_up("launcher", other, _known(), f"in {file} each table is named after a launcher")
    options = tables[name].values if name in tables else {}
    for option, value in options.items():
        if not isinstance(value, str):
            raise InputError(
                f"{file}: {option} of [{name}] must be a string, not {value!r:.60}",
                f'write {option} = "..."',
            )
    return dict(options)


def _known() -> dict[str, str | Launcher]:
    return with_plugins(PluginKind.LAUNCHER, BUILT_IN, Launcher)


def _launcher(known: str | Launcher) -> Launcher:
    return _built_in(known) if isinstance(known, str) else known


@cache
def _built_in(path: str) -> Launcher:
    module, _, name = path.partition(".")
    found: Launcher = getattr(import_module(f"{__package__}.{module}"), name)()
    return found
