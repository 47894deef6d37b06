"""Chakra execution traces, encoded here by the few rules of protocol buffers."""

from pathlib import Path

import pytest

from paceline.errors import InputError
from paceline.explanation.trace_analysis import analyse_trace
from paceline.importers.traces import read_trace, trace_format
from paceline.step import Phase
from paceline.step.exchanges import exchanges_by_group

COMPUTE, COLLECTIVE = 4, 7


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    content = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(content)) + content


def attribute(name: str, value: int | str) -> bytes:
    return field(10, field(1, name) + field(29 if isinstance(value, str) else 9, value))


def node(name: str, kind: int, start: int, duration: int, **attributes: int | str) -> bytes:
    extra = b"".join(attribute(key, value) for key, value in attributes.items())
    parts = field(1, 7) + field(2, name) + field(3, kind)
    return parts + field(4, b"\x01\x02") + field(6, start) + field(7, duration) + extra


def written(path: Path, *messages: bytes) -> Path:
    whole = [field(1, "0.0.4"), *messages]
    path.write_bytes(b"".join(varint(len(one)) + one for one in whole))
    return path


def a_step(slower: int = 0) -> tuple[bytes, ...]:
    end = 3_000 + slower
    return (
        node("aten::forward_linear", COMPUTE, 0, 1_000),
        node("linear_backward", COMPUTE, 1_000, 2_000 + slower),
        node("nccl:all_reduce", COLLECTIVE, end, 4_000 - end, comm_size=4_000_000, pg_name="dp"),
        node("Optimizer.step", COMPUTE, 4_000, 500),
    )


def test_kinds_times_and_sizes_are_read(tmp_path):
    path = written(tmp_path / "chakra.0.et", *a_step())
    found = trace_format(path)
    assert found is not None and found.name == "chakra"
    (step,) = read_trace([path]).steps
    assert [(task.phase, round(task.seconds, 6)) for task in step.tasks] == [
        (Phase.FORWARD, 0.001),
        (Phase.BACKWARD, 0.002),
        (Phase.COMMUNICATE, 0.001),
        (Phase.UPDATE, 0.0005),
    ]
    (group,) = exchanges_by_group(step)
    assert (group.group, group.size_bytes) == ("dp", 4_000_000)
    assert group.exposed_seconds == pytest.approx(0.001)


def test_files_of_ranks_are_one_trace_and_the_slow_rank_is_named(tmp_path):
    for rank in range(4):
        written(tmp_path / f"chakra.{rank}.et", *a_step(slower=800 if rank == 2 else 0))
    found = analyse_trace([tmp_path])
    assert [rank.rank for rank in found.profile.ranks] == [0, 1, 2, 3]
    assert found.remedies.cause is not None and found.remedies.cause.what == "rank 2"


def test_a_trace_without_times_is_refused(tmp_path):
    path = written(tmp_path / "made.et", node("all_reduce", COLLECTIVE, 0, 0))
    with pytest.raises(InputError, match="without times") as refusal:
        read_trace([path])
    assert "chakra_trace_link" in refusal.value.hint


@pytest.mark.parametrize("cut", [1, 5, 40, 90])
def test_truncated_nodes_are_counted(tmp_path, cut):
    path = written(tmp_path / "chakra.0.et", *a_step())
    path.write_bytes(path.read_bytes()[:-cut])
    assert read_trace([path]).unread == 1


def test_a_length_without_end_does_not_read_on(tmp_path):
    path = written(tmp_path / "chakra.0.et", *a_step())
    path.write_bytes(path.read_bytes() + b"\xff" * 11)
    assert read_trace([path]).unread == 1
