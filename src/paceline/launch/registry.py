"""Launchers by name: ours, each imported when it is asked for, and those that packages add."""

from functools import cache
from importlib import import_module

from paceline.launch.launcher import Launcher, LaunchSettings
from paceline.launch.local import LocalLauncher
from paceline.naming import look_up
from paceline.plugins import PluginKind, with_plugins

DEFAULT_LAUNCHER = LocalLauncher.name
BUILT_IN = {
    "local": "local.LocalLauncher",
    "lab": "lab.LabLauncher",
    "ssh": "ssh.SshLauncher",
    "torchrun": "torchrun.TorchrunLauncher",
    "mpiexec": "mpiexec.MpiexecLauncher",
    "slurm": "slurm.SlurmLauncher",
    "kubeflow": "written.KubeflowLauncher",
    "skypilot": "written.SkypilotLauncher",
    "dstack": "written.DstackLauncher",
}
"""MODULE.CLASS of this package, by the name that its class has too."""


def launchers() -> dict[str, Launcher]:
    """Every launcher by name."""
    return {name: _launcher(one) for name, one in _known().items()}


def our_launchers() -> dict[str, Launcher]:
    """Those that are no package's."""
    return {name: _ours(place) for name, place in BUILT_IN.items()}


def launcher(name: str, settings: LaunchSettings | None = None) -> Launcher:
    """The launcher of that name with a user's settings, or an error that suggests the nearest."""
    known = _known()
    found = _launcher(look_up("launcher", name, known, f"there are {', '.join(known)}"))
    return found if settings is None else found.configured(settings)


def _known() -> dict[str, str | Launcher]:
    return with_plugins(PluginKind.LAUNCHER, BUILT_IN, Launcher)


def _launcher(known: str | Launcher) -> Launcher:
    return _ours(known) if isinstance(known, str) else known


@cache
def _ours(place: str) -> Launcher:
    module, _, name = place.partition(".")
    found: Launcher = getattr(import_module(f"{__package__}.{module}"), name)()
    return found
