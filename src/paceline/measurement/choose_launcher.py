"""Launcher from its name, hosts and options as users write them."""

from collections.abc import Sequence

from paceline.launch import DEFAULT_LAUNCHER, Launcher, LaunchSettings
from paceline.launch import launcher as launcher_named
from paceline.measurement.run_job import named_options


def chosen_launcher(
    launcher: str = "", hosts: str | Sequence[str] = (), launcher_options: Sequence[str] = ()
) -> Launcher:
    """The launcher of that name [local] on ``hosts``, with ``name=value`` options."""
    names = hosts.split(",") if isinstance(hosts, str) else hosts
    machines = tuple(name.strip() for name in names if name.strip())
    settings = LaunchSettings(machines, named_options(launcher_options))
    return launcher_named(launcher or DEFAULT_LAUNCHER, settings)
