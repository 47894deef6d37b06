"""Each kind of trace, whole and damaged, into measured steps; figures worked out by hand."""

import json
from pathlib import Path

import pytest

from paceline.errors import InputError, UnknownNameError
from paceline.explanation.trace_analysis import analyse_trace
from paceline.importers.traces import ParsedTrace, read_trace, trace_format
from paceline.step import Origin, Phase, Step, Task, breakdown
from paceline.step.exchanges import exchanges_by_group
from paceline.step.schedule import schedule
from paceline.step.serialise import chrome_trace

TRACES = Path(__file__).parents[2] / "fixtures" / "traces"


def read(*names: str) -> ParsedTrace:
    return read_trace([TRACES / name for name in names])


def exposed(step: Step, rank: int | None = None) -> dict[str, float]:
    """Exposed milliseconds by phase."""
    parts = breakdown(step, rank).exposed
    return {str(phase): seconds * 1e3 for phase, seconds in parts.items()}


@pytest.mark.parametrize(
    ("name", "program"),
    [
        ("kineto_gloo_rank0.json", "kineto"),
        ("kineto_nccl_rank3.json", "kineto"),
        ("horovod_two_steps_unclosed.json", "horovod"),
        ("horovod_recorded_startup.json", "horovod"),
        ("mxnet_profile.json", "mxnet"),
        ("cntk_profile.json", "cntk"),
        ("cntk_profile.csv", "cntk"),
        ("timeline.m0.0.txt", "lbann"),
        ("pydtnn_recorded.trace.csv", "pydtnn"),
    ],
)
def test_a_format_is_known_by_its_first_bytes(name: str, program: str):
    found = trace_format(TRACES / name)
    assert found is not None
    assert found.name == program


class TestKinetoOnGpus:
    def test_kernels_take_the_phase_of_the_call_that_launched_them(self):
        trace = read("kineto_nccl_rank3.json")
        assert (trace.ranks, trace.unread, trace.facts["backend"]) == (8, 0, "nccl")
        for step in trace.steps:
            assert step.ranks == [3]
            assert exposed(step) == pytest.approx(
                {
                    "forward": 4.0,
                    "backward": 6.0,
                    "update": 0.5,
                    "copy": 1.0,
                    "input": 0.5,
                    "communicate": 1.0,
                    "wait": 0.49,
                }
            )

    def test_buckets_carry_their_bytes_and_their_overlap(self):
        step = read("kineto_nccl_rank3.json").steps[0]
        buckets = [task for task, _ in step.on("network")]
        assert [(task.layer, task.size_bytes) for task in buckets] == [
            ("bucket 0", 262144 * 4),
            ("bucket 1", 1024 * 4),
        ]
        assert breakdown(step).hidden_communication_seconds == pytest.approx(2e-3)

    def test_a_lane_does_one_thing_at_a_time(self):
        step = read("kineto_nccl_rank3.json").steps[0]
        assert step.resources == ["input", "copy", "compute", "network"]

    def test_damaged_trace_gives_its_valid_part(self):
        trace = read("kineto_damaged.json")
        assert trace.unread > 0
        assert exposed(trace.steps[0])["forward"] == pytest.approx(4.0)


class TestKinetoOnCpus:
    def test_a_recorded_job_of_two_ranks(self):
        trace = read("kineto_gloo_rank0.json", "kineto_gloo_rank1.json")
        assert (trace.ranks, trace.facts["backend"], trace.warnings) == (2, "gloo", ())
        assert [step.label for step in trace.steps] == ["step 3", "step 4"]
        step = trace.steps[0]
        assert step.ranks == [0, 1]
        sizes = [task.size_bytes for task, _ in step.on("network", rank=0)]
        assert sizes == [267786 * 4, 5088 * 4]  # as DDP cut 272874 parameters at 0.25 MB

    def test_waiting_for_a_message_is_exposed_communication_not_host_time(self):
        step = read("kineto_gloo_rank0.json", "kineto_gloo_rank1.json").steps[0]
        parts = exposed(step, rank=0)
        assert parts["communicate"] > 40  # rank 0 waits for rank 1, which was slower
        assert parts["other"] < 5
        assert exposed(step, rank=1)["communicate"] < 1

    def test_steps_end_with_the_optimiser_where_no_marks_were_set(self, tmp_path: Path):
        document = json.loads((TRACES / "kineto_gloo_rank0.json").read_text())
        document["traceEvents"] = [
            event for event in document["traceEvents"] if "ProfilerStep" not in event["name"]
        ]
        path = tmp_path / "unmarked.json"
        path.write_text(json.dumps(document))
        trace = read_trace([path])
        assert len(trace.steps) == 2
        assert "profiler.step()" in trace.warnings[0]


class TestHorovod:
    def test_fused_tensors_are_one_message(self):
        trace = read("horovod_two_steps_unclosed.json")
        assert (trace.ranks, trace.unread, trace.facts["tensors"]) == (2, 0, 3)
        first, second = trace.steps
        assert [(t.layer, t.size_bytes) for t, _ in first.on("network")] == [
            ("bucket 0", 4 * (10 * 256 + 10)),
            ("bucket 1", 4 * 64 * 3 * 3 * 3),
        ]
        assert exposed(first)["communicate"] == pytest.approx(1.002 + 5.0)
        assert first.metadata["period_seconds"] == pytest.approx(0.1)
        assert first.metadata["most_often_last_rank"] == 1
        assert second.label == "step 1"

    def test_broadcasts_are_the_start_up(self):
        trace = read("horovod_recorded_startup.json")
        assert [step.label for step in trace.steps] == ["start-up"]
        assert "no training step" in trace.warnings[1]

    def test_a_timeline_of_a_job_that_died(self):
        trace = read("horovod_damaged.json")
        assert len(trace.steps) == 2
        assert trace.unread > 0
        assert "in flight" in trace.warnings[0]


class TestMxnet:
    def test_operators_by_name(self):
        trace = read("mxnet_profile.json")
        assert exposed(trace.steps[0]) == pytest.approx(
            {"forward": 2.4, "backward": 4.1, "update": 0.5, "copy": 0.1, "communicate": 0.9}
        )
        assert breakdown(trace.steps[0]).hidden_communication_seconds == pytest.approx(0.6e-3)
        assert len(trace.steps) == 2

    def test_an_unclosed_profile(self):
        trace = read("mxnet_cut.json")
        assert len(trace.steps) == 2
        assert trace.unread == 1


@pytest.mark.parametrize("name", ["cntk_profile.json", "cntk_profile.csv"])
def test_cntk_minibatches_are_steps(name: str):
    trace = read(name)
    assert len(trace.steps) == 3
    for step in trace.steps:
        assert exposed(step) == pytest.approx(
            {"input": 0.1, "other": 0.52, "communicate": 0.2, "update": 0.08}
        )
    assert trace.unread == (1 if name.endswith("csv") else 0)


def test_lbann_files_are_ranks():
    trace = read("timeline.m0.0.txt", "timeline.m0.1.txt")
    assert (trace.ranks, trace.unread) == (2, 2)
    assert exposed(trace.steps[1], 1) == pytest.approx(
        {"forward": 300, "backward": 450, "update": 50, "wait": 50}
    )


def test_pydtnn_blocks_are_not_counted_twice():
    trace = read("pydtnn_blocks.trace.csv")
    assert exposed(trace.steps[0]) == pytest.approx(
        {"forward": 450, "backward": 1000, "update": 20, "communicate": 150}
    )
    assert trace.unread == 1


def test_a_recorded_pydtnn_trace_sums_to_its_run():
    step = read("pydtnn_recorded.trace.csv").steps[0]
    assert step.seconds == pytest.approx(14.6271 / 6, rel=0.02)  # the log of the same run


def test_our_own_export_reads_back():
    tasks = [
        Task("conv", Phase.FORWARD, "compute", 0.2),
        Task("conv back", Phase.BACKWARD, "compute", 0.4, after=(0,)),
        Task("all-reduce", Phase.COMMUNICATE, "network", 0.3, after=(1,)),
        Task("conv", Phase.FORWARD, "compute", 0.25, rank=1),
    ]
    path = Path("export.json")
    path.write_text(chrome_trace(schedule(tasks)))
    (step,) = read_trace([path]).steps
    assert step.origin is Origin.MEASURED
    assert step.ranks == [0, 1]
    assert step.seconds == pytest.approx(0.9)
    assert exposed(step, 0) == pytest.approx({"forward": 200, "backward": 400, "communicate": 300})


def test_unknown_files_and_formats_are_errors(tmp_path: Path):
    path = tmp_path / "notes.txt"
    path.write_text("nothing here")
    with pytest.raises(InputError, match="trace format not recognised"):
        read_trace([path])
    with pytest.raises(UnknownNameError, match="kineto"):
        read_trace([path], "kinetto")
    with pytest.raises(InputError, match="no trace file"):
        read_trace([])


class TestKinetoWithGroupsOfRanks:
    """Two ranks in each of two tensor-parallel groups, data parallel across them."""

    TENSOR = {0: "[0, 1]", 1: "[0, 1]", 2: "[2, 3]", 3: "[2, 3]"}
    DATA = {0: "[0, 2]", 1: "[1, 3]", 2: "[0, 2]", 3: "[1, 3]"}

    @pytest.fixture
    def files(self, tmp_path):
        paths = []
        for rank in range(4):
            clock = 1_000_000.0 * rank
            late = 2_000.0 if rank in (2, 3) else 0.0
            events = [
                self.event("user_annotation", "ProfilerStep#3", clock, 20_000, 1),
                self.kernel("gemm", clock, 4_000 + late, 7),
                self.message("mesh_tp", self.TENSOR[rank], clock + 4_000 + late, 1_000),
                self.kernel("gemm_backward", clock + 5_000 + late, 4_000, 7),
                self.message("mesh_dp", self.DATA[rank], clock + 9_000 + late, 4_000 - late),
            ]
            document = {
                "schemaVersion": 1,
                "deviceProperties": [],
                "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 4},
                "traceEvents": events,
            }
            path = tmp_path / f"rank{rank}.json"
            path.write_text(json.dumps(document))
            paths.append(path)
        return paths

    @staticmethod
    def event(category, name, start, duration, thread, **arguments):
        place = {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": thread}
        return {**place, "ts": start, "dur": duration, "args": arguments}

    def kernel(self, name, start, duration, stream, **arguments):
        return self.event("kernel", name, start, duration, stream, stream=stream, **arguments)

    def message(self, group, ranks, start, duration):
        arguments = {
            "Collective name": "allreduce",
            "Process Group Description": group,
            "Process Group Ranks": ranks,
            "In msg nelems": 1000,
            "dtype": "BFloat16",
        }
        name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
        return self.kernel(name, start, duration, 20 if group == "mesh_tp" else 21, **arguments)

    def test_messages_are_separated_by_group(self, files):
        step = analyse_trace(files).typical
        found = {one.group: one for one in exchanges_by_group(step)}
        assert set(found) == {"mesh_tp", "mesh_dp"}
        assert found["mesh_dp"].exposed_seconds == pytest.approx(3e-3)
        assert found["mesh_tp"].size_bytes == 2000

    def test_clocks_are_aligned_from_group_to_group(self, files):
        step = analyse_trace(files).typical
        ends = {
            task.rank: start + task.seconds
            for task, start in zip(step.tasks, step.starts, strict=True)
            if task.resource == "network mesh_dp"
        }
        assert len(ends) == 4
        assert max(ends.values()) - min(ends.values()) < 1e-6
