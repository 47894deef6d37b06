"""``paceline import`` and ``paceline catalog recipes`` on the command line."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from paceline.cli.main import cli
from paceline.errors import InputError, UnknownNameError
from paceline.store import Store, default_store_path

FIXTURES = Path(__file__).parents[1] / "fixtures"
LOGS = FIXTURES / "logs"


def run(*arguments: object) -> str:
    answer = CliRunner().invoke(cli, [str(a) for a in arguments], catch_exceptions=False)
    assert answer.exit_code == 0, answer.output
    return answer.stdout


def recorded() -> list[str]:
    with Store(default_store_path(), create=False) as store:
        return [launch.framework for launch in store.launches()]


def test_slow_steps_print_as_seconds_per_step(tmp_path):
    log = tmp_path / "slow.log"
    log.write_text("Steps:  40%|████ | 4/10 [47:08<1:10:42, 707.00s/it, loss=2.1]\n")
    assert "throughput  707 s per step" in run("import", log, "--dry-run")


def test_an_imported_log_is_listed_and_shown():
    text = run("import", LOGS / "caffe_train_recorded.log")
    assert "60.3 samples/s" in text
    assert "Recorded:" in text
    assert recorded() == ["caffe"]
    assert "60.3" in run("study", "list", "--launches")


def test_a_dry_run_records_nothing():
    text = run("import", LOGS / "caffe_time_recorded.log", "--dry-run")
    assert "s0b0_c1" in text
    assert not default_store_path().exists()


def test_several_logs_are_launches_of_one_study():
    run("import", LOGS / "horovod_gpu.log", LOGS / "horovod_cpu_tagged.log", "--study", "both")
    with Store(default_store_path(), create=False) as store:
        assert {launch.study for launch in store.launches()} == {"both"}


def test_trace_files_given_together_are_ranks():
    traces = [FIXTURES / "traces" / f"kineto_gloo_rank{rank}.json" for rank in (0, 1)]
    text = run("import", *traces, "--batch", 32, "--model", "small")
    assert "kineto trace, 2 processes, 2 steps" in text
    assert "rank 1" in text


def test_collectives_are_shown_and_not_recorded():
    text = run("import", LOGS / "nccl_all_reduce.log")
    assert "all_reduce" in text
    assert "nothing was recorded" in text


def test_json_has_units_in_its_names():
    document = json.loads(run("import", LOGS / "horovod_gpu.log", "--dry-run", "--json"))
    assert document["schema"] == "paceline/import/1"
    (log,) = document["files"]
    assert log["throughput"]["per_second"] == 1280.0
    assert log["step_seconds"] == pytest.approx(0.2, rel=1e-2)


def test_missing_facts_are_named():
    runner = CliRunner()
    answer = runner.invoke(cli, ["import", str(LOGS / "tarantella_2ranks.log")])
    assert isinstance(answer.exception, InputError)
    assert "--batch" in answer.exception.hint


def test_a_layer_trace_is_sent_to_predict():
    answer = CliRunner().invoke(cli, ["import", str(FIXTURES / "traces" / "layers.csv")])
    assert isinstance(answer.exception, InputError)
    assert "paceline predict --trace" in answer.exception.hint


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["import", "nowhere.log"], InputError),
        (["import", str(LOGS / "caffe_damaged.log"), "--program", "cafe"], UnknownNameError),
        (["import", str(LOGS / "caffe_damaged.log"), "-j", "1x1,1x2"], InputError),
        (["catalog", "recipes", "nothing"], UnknownNameError),
        (["catalog", "recipes", "caffe", "--set", "ranks"], InputError),
    ],
)
def test_mistakes_are_errors_for_the_user(arguments: list[str], error: type[Exception]):
    answer = CliRunner().invoke(cli, arguments)
    assert isinstance(answer.exception, error)


def test_a_recipe_prints_a_command_to_paste():
    text = run("catalog", "recipes", "pydtnn", "--set", "ranks=2")
    assert "mpirun -np 2" in text
    assert "{batch}" in text
    assert max(map(len, text.splitlines())) <= 100
    assert "The log does not contain" in text
