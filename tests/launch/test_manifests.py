"""Files for engines that are written and not run: fields and types that these engines have."""

import pytest
import yaml

from paceline.errors import EnvironmentUnusableError, InputError
from paceline.launch import LaunchRequest, LaunchSettings, launcher
from paceline.launch.launch_script import PreparedLaunch

VARIABLES = [{"name": str, "value": str}]
POD = {
    "volumes": [{"name": str, "persistentVolumeClaim": {"claimName": str}}],
    "containers": [{"name": str, "volumeMounts": [{"name": str, "mountPath": str}]}],
}
SCHEMAS = {
    "kubeflow": {
        "apiVersion": str,
        "kind": str,
        "metadata": {"name": str},
        "spec": {
            "runtimeRef": {"name": str},
            "trainer": {"image": str, "command": [str], "numNodes": int, "env": VARIABLES},
            "runtimePatches": [
                {
                    "manager": str,
                    "trainingRuntimeSpec": {
                        "template": {
                            "spec": {
                                "replicatedJobs": [
                                    {
                                        "name": str,
                                        "template": {"spec": {"template": {"spec": POD}}},
                                    }
                                ]
                            }
                        }
                    },
                }
            ],
        },
    },
    "skypilot": {
        "name": str,
        "resources": {"image_id": str, "accelerators": str},
        "num_nodes": int,
        "envs": {"STUDY": str, "PACELINE_RANK_PYTHON": str},
        "file_mounts": {"/paceline-study": {"name": str, "source": str, "mode": str}},
        "run": str,
    },
    "dstack": {
        "type": str,
        "name": str,
        "nodes": int,
        "image": str,
        "env": [str],
        "commands": [str],
        "volumes": [str],
        "resources": {"gpu": str},
    },
}
"""The fields we use of TrainJob v1alpha1, of SkyPilot's task and of dstack's task, with types."""


def fit(value, schema, place=""):
    if isinstance(schema, dict):
        assert isinstance(value, dict), place
        assert set(value) <= set(schema), f"{place}: {set(value) - set(schema)}"
        for key, item in value.items():
            fit(item, schema[key], f"{place}.{key}")
    elif isinstance(schema, list):
        assert isinstance(value, list), place
        for number, item in enumerate(value):
            fit(item, schema[0], f"{place}[{number}]")
    else:
        assert type(value) is schema, f"{place} is {value!r}"


def chosen(name):
    options = {"image": "repo/image:1", "volume": "/mnt/disk", "python": "python3.12"}
    if name != "kubeflow":
        options["accelerators"] = "A100:8"
    return launcher(name, LaunchSettings((), options))


def prepared(directory, nodes):
    request = LaunchRequest(lambda rank: ("true",), directory, 60.0, nodes, 4)
    return PreparedLaunch(0, request, ())


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_file_has_the_fields_that_the_engine_has(name, tmp_path):
    document = chosen(name).document(2, 4)
    fit(document, SCHEMAS[name])
    (path,) = chosen(name).write_study(tmp_path, [prepared(tmp_path, 2)])
    assert yaml.safe_load(path.read_text()) == document
    assert "|\n" in path.read_text(), "scripts are block text"
    assert "python3.12" in path.read_text()
    assert "/mnt/disk" in path.read_text()


@pytest.mark.parametrize("name", SCHEMAS)
def test_nothing_is_started_on_such_an_engine(name, tmp_path):
    assert "--dry-run" in chosen(name).detect().remedy
    with pytest.raises(EnvironmentUnusableError, match=f"does not start launches on {name}"):
        chosen(name).launch(LaunchRequest(lambda rank: ("true",), tmp_path, 1.0))


def test_launches_of_several_sizes_need_files_of_their_own(tmp_path):
    with pytest.raises(InputError, match="one number of nodes, but the study has 1, 2"):
        chosen("dstack").write_study(tmp_path, [prepared(tmp_path, 1), prepared(tmp_path, 2)])
