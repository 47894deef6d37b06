"""dstack: writes a task."""

from typing import Any

from paceline.launch.launch_script import node_lines
from paceline.launch.manifests import MOUNTED, ManifestLauncher


class DstackLauncher(ManifestLauncher):
    """A dstack task: the study on a volume that all nodes mount."""

    name = "dstack"
    file = "study.dstack.yml"
    options = {
        **ManifestLauncher.options,
        "volume": "directory of the instances with the study, on a shared disk "
        "[/mnt/paceline-study]",
        "cpus": "CPUs of each node, for example 16..",
        "memory": "memory of each node, for example 64GB..",
        "accelerators": "GPUs of each node, for example A100:8",
    }

    def document(self, nodes: int, processes: int) -> dict[str, Any]:
        wanted = {
            **self._field("cpu", "cpus"),
            **self._field("memory", "memory"),
            **self._field("gpu", "accelerators"),
        }
        return {
            "type": "task",
            "name": "paceline-study",
            "nodes": nodes,
            **self._field("image", "image"),
            "env": [f"{name}={text}" for name, text in self._variables().items()],
            "commands": [node_lines("DSTACK_NODE_RANK", "DSTACK_NODES_NUM")],
            "volumes": [f"{self._option('volume', '/mnt/paceline-study')}:{MOUNTED}"],
            **({"resources": wanted} if wanted else {}),
        }
