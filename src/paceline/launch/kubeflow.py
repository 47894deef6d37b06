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
    }

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
