"""Stores that earlier versions of Paceline wrote are opened, read, exported and continued."""

import platform
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner

from paceline.cli.main import cli
from paceline.measurement.study_runner import run_study
from paceline.step import breakdown
from paceline.store import Status, Store

STORES = Path(__file__).parent.parent / "fixtures" / "stores"
STUDIES = {"first": 4, "parts": 4, "failed": 1, "imported": 1, "half": 2}
"""Launches of each study of the store of 0.1."""


@pytest.fixture
def path_of_0_1(tmp_path):
    """A store that Paceline 0.1.0 wrote on this machine."""
    path = tmp_path / "paceline.db"
    dump = (STORES / "paceline-0.1.sql").read_text()
    with sqlite3.connect(path) as connection:
        connection.executescript(dump.replace("HOST", platform.node()))
    connection.close()
    return path


def test_every_launch_of_0_1_is_read(path_of_0_1):
    with Store(path_of_0_1, create=False) as store:
        assert {name: len(store.launches(name)) for name in store.studies()} == STUDIES
        (failed,) = store.launches("failed")
        assert failed.status is Status.FAILED
        assert "timed out" in failed.outcome.reason
        first = store.launches("first")[0]
        assert (first.model, first.world_size, len(first.outcome.ranks)) == ("fcn5", 2, 2)
        assert store.latest_profile("AMD EPYC x2 24GiB threads=1")["memory_bandwidth"] > 1e9


def test_steps_and_layers_of_0_1_are_read(path_of_0_1):
    with Store(path_of_0_1, create=False) as store:
        launches = store.launches("parts")
    (phases,) = [one for one in launches if one.instrument == "phases" and one.synchronised]
    exposed = breakdown(phases.outcome.timeline, 0).exposed
    assert {"forward", "backward", "communicate"} <= {str(phase) for phase in exposed}
    (layers,) = [one for one in launches if one.instrument == "layers" and one.synchronised]
    assert {layer.name for layer in layers.outcome.layers} >= {"fc1", "fc4"}


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("study list --launches", "12 of 12 launches"),
        ("study show {launch}", "fcn5"),
        ("study export {directory}/launches.csv", "12 rows"),
        ("study export {directory}/steps.parquet --table steps", "rows"),
        ("explain first", "fcn5"),
    ],
)
def test_commands_work_on_a_store_of_0_1(path_of_0_1, tmp_path, command, expected):
    with Store(path_of_0_1, create=False) as store:
        launch = store.launches("first")[0].id
    arguments = command.format(launch=launch, directory=tmp_path).split()
    result = CliRunner().invoke(cli, [*arguments, "--store", str(path_of_0_1)])
    assert result.exit_code == 0, result.output
    assert expected in result.output


def test_a_study_that_0_1_left_unfinished_is_finished(path_of_0_1):
    with Store(path_of_0_1) as store:
        assert len(store.abandoned()) == 1
        run_study(store, "half")
        ends = [launch.status for launch in store.launches("half")]
    assert ends == [Status.FINISHED, Status.INTERRUPTED, Status.FINISHED, Status.FINISHED]
