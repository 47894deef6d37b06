"""Engines that Paceline writes files for and does not run: Kubeflow, SkyPilot, dstack."""

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paceline.errors import EnvironmentUnusableError, InputError
from paceline.launch.launcher import Detection, Launcher, LaunchExit, LaunchHost, LaunchRequest
from paceline.launch.onhost.agent import PYTHON
from paceline.launch.prepared import PreparedLaunch, node_lines
from paceline.launch.yaml_text import as_yaml

MOUNTED = "/paceline-study"
REMEDY = "'paceline measure --dry-run DIRECTORY' writes its files"


class WrittenLauncher(Launcher):
    """Writes one file for a study, whose directory all nodes must see at `MOUNTED`.

    All launches of the study must have the same number of nodes.
    """

    takes_hosts = False
    options = {
        "image": "container image with the framework",
        "python": "the interpreter in it [python3]",
        "volume": "volume that holds the directory of the study",
    }
    file: str

    @abstractmethod
    def document(self, nodes: int, processes: int) -> dict[str, Any]:
        """The file as values."""

    def detect(self) -> Detection:
        """It never launches."""
        return Detection(False, "", f"it is written for, not run: {REMEDY}")

    def hosts(self) -> tuple[LaunchHost, ...]:
        """Whatever the engine gives."""
        return (LaunchHost(self.name),)

    def validate(self, nodes: int, processes: int) -> None:
        """Refused before anything starts; what is only written is not asked."""
        raise EnvironmentUnusableError(f"Paceline does not start launches on {self.name}", REMEDY)

    def launch(self, request: LaunchRequest) -> LaunchExit:
        """Refused."""
        self.validate(request.nodes, request.processes)
        raise AssertionError("validate refuses")

    def write_study(self, directory: Path, launches: Sequence[PreparedLaunch]) -> list[Path]:
        """One file for all launches."""
        places = {(one.request.nodes, one.request.processes) for one in launches}
        counts = sorted({nodes for nodes, _ in places})
        if len(counts) != 1:
            raise InputError(
                f"a file for {self.name} has one number of nodes, and the study has "
                f"{', '.join(map(str, counts))}",
                "prepare a study for each (-j)",
            )
        path = directory / self.file
        path.write_text(as_yaml(self.document(counts[0], max(p for _, p in places))), "utf-8")
        return [path]

    def _variables(self) -> dict[str, str]:
        return {"STUDY": MOUNTED, PYTHON: self.settings.options.get("python", "python3")}

    def _chosen(self, name: str, otherwise: str) -> str:
        return self.settings.options.get(name, otherwise)


class KubeflowLauncher(WrittenLauncher):
    """A TrainJob of Kubeflow Trainer 2: one pod per node, the study on a volume claim."""

    name = "kubeflow"
    file = "trainjob.yaml"
    options = {**WrittenLauncher.options, "runtime": "training runtime [torch-distributed]"}

    def document(self, nodes: int, processes: int) -> dict[str, Any]:
        """A TrainJob whose pods know their node by JOB_COMPLETION_INDEX."""
        script = node_lines("JOB_COMPLETION_INDEX", "NODES")
        volume = {"persistentVolumeClaim": {"claimName": self._chosen("volume", "paceline-study")}}
        pod = {
            "volumes": [{"name": "study", **volume}],
            "containers": [
                {"name": "node", "volumeMounts": [{"name": "study", "mountPath": MOUNTED}]}
            ],
        }
        patched = {"name": "node", "template": {"spec": {"template": {"spec": pod}}}}
        variables = {**self._variables(), "NODES": str(nodes)}
        return {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "metadata": {"name": "paceline-study"},
            "spec": {
                "runtimeRef": {"name": self._chosen("runtime", "torch-distributed")},
                "trainer": {
                    **({"image": self.settings.options["image"]} if self._has_image() else {}),
                    "command": ["/bin/sh", "-c", script],
                    "numNodes": nodes,
                    "env": [{"name": name, "value": text} for name, text in variables.items()],
                },
                "runtimePatches": [
                    {
                        "manager": "paceline",
                        "trainingRuntimeSpec": {
                            "template": {"spec": {"replicatedJobs": [patched]}}
                        },
                    }
                ],
            },
        }

    def _has_image(self) -> bool:
        return "image" in self.settings.options


class SkypilotLauncher(WrittenLauncher):
    """A SkyPilot task: the study in a bucket that all nodes mount."""

    name = "skypilot"
    file = "skypilot.yaml"
    options = {
        **WrittenLauncher.options,
        "volume": "name of the bucket that holds the directory of the study",
        "accelerators": "accelerators of each node, such as A100:8",
    }

    def document(self, nodes: int, processes: int) -> dict[str, Any]:
        """A task whose nodes know their number by SKYPILOT_NODE_RANK."""
        resources = {
            **_given("image_id", "docker:", self.settings.options.get("image")),
            **_given("accelerators", "", self.settings.options.get("accelerators")),
        }
        return {
            "name": "paceline-study",
            **({"resources": resources} if resources else {}),
            "num_nodes": nodes,
            "envs": self._variables(),
            "file_mounts": {
                MOUNTED: {
                    "name": self._chosen("volume", "paceline-study"),
                    "source": ".",
                    "mode": "MOUNT",
                }
            },
            "run": node_lines("SKYPILOT_NODE_RANK", "SKYPILOT_NUM_NODES"),
        }


class DstackLauncher(WrittenLauncher):
    """A dstack task: the study on a volume that all nodes mount."""

    name = "dstack"
    file = "study.dstack.yml"
    options = {
        **WrittenLauncher.options,
        "volume": "directory of the instances that holds the study, on a disk that they share",
        "accelerators": "GPUs of each node, such as A100:8",
    }

    def document(self, nodes: int, processes: int) -> dict[str, Any]:
        """A task whose nodes know their number by DSTACK_NODE_RANK."""
        gpus = self.settings.options.get("accelerators")
        return {
            "type": "task",
            "name": "paceline-study",
            "nodes": nodes,
            **_given("image", "", self.settings.options.get("image")),
            "env": [f"{name}={text}" for name, text in self._variables().items()],
            "commands": [node_lines("DSTACK_NODE_RANK", "DSTACK_NODES_NUM")],
            "volumes": [f"{self._chosen('volume', '/mnt/paceline-study')}:{MOUNTED}"],
            **({"resources": {"gpu": gpus}} if gpus else {}),
        }


def _given(key: str, before: str, value: str | None) -> dict[str, str]:
    return {} if value is None else {key: f"{before}{value}"}
