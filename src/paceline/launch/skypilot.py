"""SkyPilot: writes a task."""

from typing import Any

from paceline.launch.launch_script import node_lines
from paceline.launch.manifests import MOUNTED, ManifestLauncher


class SkypilotLauncher(ManifestLauncher):
    """A SkyPilot task: the study in a bucket that all nodes mount."""

    name = "skypilot"
    file = "skypilot.yaml"
    options = {
        **ManifestLauncher.options,
        "volume": "bucket with the study directory [paceline-study]",
        "cpus": "CPUs of each node, for example 16+",
        "memory": "memory of each node in GB, for example 64+",
        "accelerators": "accelerators of each node, for example A100:8",
    }

    def document(self, nodes: int, processes: int) -> dict[str, Any]:
        resources = {
            **self._field("image_id", "image", prefix="docker:"),
            **self._field("accelerators", "accelerators"),
            **self._field("cpus", "cpus"),
            **self._field("memory", "memory"),
        }
        return {
            "name": "paceline-study",
            **({"resources": resources} if resources else {}),
            "num_nodes": nodes,
            "envs": self._variables(),
            "file_mounts": {
                MOUNTED: {
                    "name": self._option("volume", "paceline-study"),
                    "source": ".",
                    "mode": "MOUNT",
                }
            },
            "run": node_lines("SKYPILOT_NODE_RANK", "SKYPILOT_NUM_NODES"),
        }
