"""Logs and traces of other programs as launches like any other."""

from pathlib import Path

import pytest

from paceline.analysis.launch_statistics import mean_step_seconds, throughput
from paceline.errors import InputError
from paceline.importers.import_launches import UserFacts, launch_of_log, launch_of_trace
from paceline.importers.logs import ParsedLog, StepRecord, read_log
from paceline.importers.traces import read_trace
from paceline.step import Phase, breakdown
from paceline.store import Launch, Store

FIXTURES = Path(__file__).parents[1] / "fixtures"


def imported(name: str, **given: object) -> Launch:
    path = FIXTURES / "logs" / name
    return launch_of_log(read_log(path), path, "study", UserFacts(**given))  # type: ignore[arg-type]


def test_a_log_becomes_a_launch_that_statistics_understand():
    launch = imported("pydtnn_recorded_2ranks.log")
    assert (launch.provenance, launch.framework, launch.model) == (
        "imported",
        "pydtnn",
        "alexnet_cifar10",
    )
    assert (launch.world_size, launch.batch_per_rank, launch.precision) == (2, 32, "fp32")
    assert mean_step_seconds(launch) == pytest.approx(12.8764 / 6)
    assert throughput(launch) == pytest.approx(29.8221, rel=1e-4)
    assert launch.outcome.facts["printed_throughput"]["per_second"] == 29.8221


def test_warm_up_steps_of_the_program_are_excluded():
    launch = imported("caffe_train_recorded.log")
    assert launch.warmup_steps == 1
    assert launch.outcome.ranks[0].wall_seconds[:3] == pytest.approx((0.63, 0.4575, 0.4575))
    assert throughput(launch) == pytest.approx(32 * 8 / 4.247)


def test_a_batch_that_ranks_do_not_share_evenly_keeps_its_throughput():
    log = ParsedLog("cntk", ranks=4, global_batch=25.0, steps=(StepRecord(10, 0.002, 10),))
    launch = launch_of_log(log, Path("cntk.log"), "study", UserFacts())
    assert launch.batch_per_rank == 6
    assert throughput(launch) == pytest.approx(12500)


def test_ranks_are_compared_on_the_steps_that_all_have():
    launch = imported("cntk_brainscript_2ranks.log")
    assert len(launch.outcome.ranks) == 2
    assert mean_step_seconds(launch) == pytest.approx((0.12 + 0.11 + 0.09) / 3)


def test_layers_and_phases_are_imported():
    launch = imported("caffe_time_recorded.log")
    assert launch.instrument == "layers"
    assert launch.outcome.layers[1].backward_seconds == pytest.approx(1.5706e-3)
    launch = imported("deepspeed_breakdown.log", batch_per_rank=8, ranks=2)
    assert launch.instrument == "phases"
    assert launch.outcome.timeline is not None
    parts = breakdown(launch.outcome.timeline).exposed
    assert parts[Phase.COMMUNICATE] == pytest.approx(0.0315)


def test_missing_settings_are_requested():
    with pytest.raises(InputError, match="batch size") as raised:
        imported("tarantella_2ranks.log")
    assert "--batch" in raised.value.hint
    launch = imported("tarantella_2ranks.log", batch_per_rank=16, model="resnet50")
    assert (launch.world_size, launch.model) == (4, "resnet50")
    assert throughput(launch) == pytest.approx(64 / 0.245)


def test_a_log_with_only_a_rate_becomes_one_step():
    launch = imported("cntk_model_averaging.log", batch_per_rank=100)
    assert mean_step_seconds(launch) == pytest.approx(800 * (1 / 15500 + 1 / 16000) / 2)


def test_a_log_without_any_time_is_refused():
    log = ParsedLog("caffe", global_batch=32.0)
    with pytest.raises(InputError, match="neither step times"):
        launch_of_log(log, Path("x.log"), "study", UserFacts())


def test_a_million_steps_are_thinned():
    log = ParsedLog("caffe", global_batch=1.0, steps=(StepRecord(1_000_000, 0.5, 1_000_000),))
    launch = launch_of_log(log, Path("x.log"), "study", UserFacts())
    assert len(launch.outcome.ranks[0].wall_seconds) == 20_000
    assert mean_step_seconds(launch) == 0.5


def test_a_trace_becomes_an_instrumented_launch():
    paths = [FIXTURES / "traces" / f"kineto_gloo_rank{rank}.json" for rank in (0, 1)]
    launch = launch_of_trace(read_trace(paths), paths[0], "study", UserFacts(batch_per_rank=32))
    assert (launch.instrument, launch.world_size, launch.warmup_steps) == ("phases", 2, 1)
    assert len(launch.outcome.ranks) == 2
    assert launch.outcome.timeline is not None
    with pytest.raises(InputError, match="batch size"):
        launch_of_trace(read_trace(paths), paths[0], "study", UserFacts())


def test_an_imported_launch_survives_the_store(tmp_path: Path):
    launch = imported("lbann_new.log")
    with Store(tmp_path / "paceline.db") as store:
        store.complete(launch)
        (kept,) = store.launches()
    assert kept == launch
