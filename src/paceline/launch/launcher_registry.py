"""Launchers by name: built-in ones, imported on first use, and those of plug-ins."""

from functools import cache
from importlib import import_module

from paceline.launch.launcher import Launcher, LaunchSettings
from paceline.launch.local import LocalLauncher
from paceline.naming import look_up
from paceline.plugins import PluginKind, with_plugins

DEFAULT_LAUNCHER = LocalLauncher.name
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
    """Return a launcher with the user's settings; an unknown name raises with a suggestion."""
    known = _known()
    found = _launcher(look_up("launcher", name, known, f"choose one of {', '.join(known)}"))
    return found if settings is None else found.configured(settings)


def _known() -> dict[str, str | Launcher]:
    return with_plugins(PluginKind.LAUNCHER, BUILT_IN, Launcher)


def _launcher(known: str | Launcher) -> Launcher:
    return _built_in(known) if isinstance(known, str) else known


@cache
def _built_in(path: str) -> Launcher:
    module, _, name = path.partition(".")
    found: Launcher = getattr(import_module(f"{__package__}.{module}"), name)()
    return found
