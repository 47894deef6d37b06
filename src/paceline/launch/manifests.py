"""Base of launchers that write a YAML manifest for another system and start nothing."""

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from paceline.errors import EnvironmentUnusableError, InputError
from paceline.launch.launch_script import PreparedLaunch
from paceline.launch.launcher import Detection, Launcher, LaunchExit, LaunchHost, LaunchRequest
from paceline.launch.onhost.agent import PYTHON

MOUNTED = "/paceline-study"
REMEDY = "write its manifest with 'paceline measure --dry-run DIRECTORY'"


class ManifestLauncher(Launcher):
    """Writes one manifest for a study, whose directory all nodes must mount at `MOUNTED`.

    All launches of the study must have the same number of nodes.
    """

    takes_hosts = False
    options = {
        "image": "container image with the framework",
        "python": "Python interpreter in the image [python3]",
        "volume": "volume with the study directory",
        "cpus": "CPUs of each node",
        "memory": "memory of each node",
    }
    file: str

    @abstractmethod
    def document(self, nodes: int, processes: int) -> dict[str, Any]: ...

    def detect(self) -> Detection:
        return Detection(False, "", f"Paceline starts no launches here; {REMEDY}")

    def hosts(self) -> tuple[LaunchHost, ...]:
        """Return one entry that stands for all nodes: the other system chooses them."""
        return (LaunchHost(self.name),)

    def validate(self, nodes: int, processes: int) -> None:
        """Reject every launch; ``--dry-run`` does not call this."""
        raise EnvironmentUnusableError(f"Paceline does not start launches on {self.name}", REMEDY)

    def launch(self, request: LaunchRequest) -> LaunchExit:
        self.validate(request.nodes, request.processes)
        raise AssertionError("validate raises")

    def write_study(self, directory: Path, launches: Sequence[PreparedLaunch]) -> list[Path]:
        topologies = {(launch.request.nodes, launch.request.processes) for launch in launches}
        counts = sorted({nodes for nodes, _ in topologies})
        if len(counts) != 1:
            raise InputError(
                f"a {self.name} manifest has one number of nodes, but the study has "
                f"{', '.join(map(str, counts))}",
                "prepare one study per number of nodes (-j)",
            )
        path = directory / self.file
        document = self.document(counts[0], max(processes for _, processes in topologies))
        path.write_text(yaml.dump(document, Dumper=_Dumper, sort_keys=False), "utf-8")
        return [path]

    def _variables(self) -> dict[str, str]:
        return {"STUDY": MOUNTED, PYTHON: self._option("python", "python3")}

    def _option(self, name: str, default: str) -> str:
        return self.settings.options.get(name, default)

    def _field(self, key: str, option: str, prefix: str = "") -> dict[str, str]:
        """Return the field ``key`` with the value of an option; nothing if it is not set."""
        value = self.settings.options.get(option)
        return {} if value is None else {key: f"{prefix}{value}"}


class _Dumper(yaml.SafeDumper):
    """`yaml.SafeDumper` that writes scripts as block text, so that users can read and edit them."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


_Dumper.add_representer(str, _represent_text)
