"""Launchers by name: ours, and those that installed packages add."""

from paceline.launch.launcher import Launcher, LaunchSettings
from paceline.launch.local import LocalLauncher
from paceline.launch.mpiexec import MpiexecLauncher
from paceline.launch.slurm import SlurmLauncher
from paceline.launch.ssh import SshLauncher
from paceline.launch.torchrun import TorchrunLauncher
from paceline.launch.written import DstackLauncher, KubeflowLauncher, SkypilotLauncher
from paceline.naming import look_up
from paceline.plugins import PluginKind, with_plugins

DEFAULT_LAUNCHER = LocalLauncher.name
BUILT_IN: dict[str, Launcher] = {
    one.name: one
    for one in (
        LocalLauncher(),
        SshLauncher(),
        TorchrunLauncher(),
        MpiexecLauncher(),
        SlurmLauncher(),
        KubeflowLauncher(),
        SkypilotLauncher(),
        DstackLauncher(),
    )
}


def launchers() -> dict[str, Launcher]:
    """Every launcher by name."""
    return with_plugins(PluginKind.LAUNCHER, BUILT_IN, Launcher)


def launcher(name: str, settings: LaunchSettings | None = None) -> Launcher:
    """The launcher of that name with a user's settings, or an error that suggests the nearest."""
    known = launchers()
    found = look_up("launcher", name, known, f"there are {', '.join(known)}")
    return found if settings is None else found.configured(settings)
