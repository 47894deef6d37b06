"""Kubeflow Trainer: writes a TrainJob."""

from typing import Any

from paceline.launch.launch_script import node_lines
from paceline.launch.manifests import MOUNTED, ManifestLauncher


class KubeflowLauncher(ManifestLauncher):
    """A TrainJob of Kubeflow Trainer 2: one pod per node, the study on a volume claim."""

    name = "kubeflow"
    file = "trainjob.yaml"
    options = {
        **ManifestLauncher.options,
        "volume": "persistent volume claim with the study directory [paceline-study]",
        "runtime": "training runtime [torch-distributed]",
        "cpus": "CPUs of each node, for example 16",
        "memory": "memory of each node, for example 64Gi",
        "gpus": "GPUs of each node (nvidia.com/gpu)",
    }

    def _resources(self) -> dict[str, Any]:
        """Return requests, and equal limits: pods of equal size do not disturb each other."""
        wanted = {
            **self._field("cpu", "cpus"),
            **self._field("memory", "memory"),
            **self._field("nvidia.com/gpu", "gpus"),
        }
        return {"resourcesPerNode": {"requests": wanted, "limits": dict(wanted)}} if wanted else {}

    def document(self, nodes: int, processes: int) -> dict[str, Any]:
        script = node_lines("JOB_COMPLETION_INDEX", "NODES")
        volume = {"persistentVolumeClaim": {"claimName": self._option("volume", "paceline-study")}}
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
                "runtimeRef": {"name": self._option("runtime", "torch-distributed")},
                "trainer": {
                    **self._field("image", "image"),
                    "command": ["/bin/sh", "-c", script],
                    "numNodes": nodes,
                    **self._resources(),
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
