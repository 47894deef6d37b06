"""OTF2 archives, written here with the same package that reads them."""

from pathlib import Path

import pytest

from paceline.errors import InputError, MissingExtraError
from paceline.importers.traces import otf2_archive, read_trace
from paceline.step import Phase, breakdown
from seen_steps import seen_step


def write_archive(directory: Path) -> None:
    """Two ranks, two steps of forward, backward, all-reduce and update, microsecond ticks."""
    otf2 = pytest.importorskip("otf2")
    with otf2.writer.open(str(directory), timer_resolution=1_000_000) as trace:
        node = trace.definitions.system_tree_node("node")
        regions = {
            name: trace.definitions.region(name)
            for name in ("train_step", "forward", "backward", "MPI_Allreduce", "optimizer_step")
        }
        for rank in (0, 1):
            group = trace.definitions.location_group(f"MPI Rank {rank}", system_tree_parent=node)
            writer = trace.event_writer("Master thread", group=group)
            for step in (0, 1):
                clock = 1000 + step * 20_000
                writer.enter(clock, regions["train_step"])
                for name, length in (
                    ("forward", 3000),
                    ("backward", 6000 + 1000 * rank),
                    ("MPI_Allreduce", 2000),
                    ("optimizer_step", 500),
                ):
                    writer.enter(clock, regions[name])
                    clock += length
                    writer.leave(clock, regions[name])
                writer.leave(clock, regions["train_step"])


def test_regions_become_steps_of_each_rank(tmp_path: Path):
    directory = tmp_path / "archive"
    write_archive(directory)
    trace = read_trace([directory])
    assert (trace.program, trace.ranks, len(trace.steps)) == ("otf2", 2, 2)
    parts = {str(phase): s for phase, s in breakdown(trace.steps[0], 1).exposed.items()}
    assert parts == pytest.approx(
        {"forward": 3e-3, "backward": 7e-3, "communicate": 2e-3, "update": 0.5e-3}
    )


def test_a_broken_archive_is_an_error_for_the_user(tmp_path: Path):
    pytest.importorskip("otf2")
    path = tmp_path / "traces.otf2"
    path.write_bytes(b"OTF2 but not really")
    with pytest.raises(InputError, match="OTF2"):
        read_trace([path])


def test_a_missing_package_is_named_with_its_pip_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "traces.otf2"
    path.write_bytes(b"")

    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(otf2_archive, "import_module", missing)
    with pytest.raises(MissingExtraError) as raised:
        read_trace([path])
    assert "pip install" in raised.value.hint


def test_a_step_that_is_written_is_read_as_it_was(tmp_path: Path):
    pytest.importorskip("otf2")
    step = seen_step({}, {"forward": 0.05}, messages=((0.5, 1e6), (1.0, 1e6)), start=0.01)
    otf2_archive.write_otf2(step, tmp_path / "archive")
    (again,) = read_trace([tmp_path / "archive"]).steps
    assert again.ranks == step.ranks
    assert again.seconds == pytest.approx(step.seconds, abs=1e-6)
    for rank in step.ranks:
        exposed, seen = breakdown(step, rank).exposed, breakdown(again, rank).exposed
        assert seen[Phase.FORWARD] == pytest.approx(exposed[Phase.FORWARD], abs=1e-6)
        assert seen[Phase.BACKWARD] == pytest.approx(exposed[Phase.BACKWARD], abs=1e-6)
    with pytest.raises(InputError, match="not empty"):
        otf2_archive.write_otf2(step, tmp_path / "archive")
