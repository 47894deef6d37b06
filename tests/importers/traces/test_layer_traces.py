"""Layer-wise traces: tables with and without headings, PyDTNN, caffe time."""

from pathlib import Path

import pytest

from paceline.errors import InputError
from paceline.importers.traces import read_layer_trace

FIXTURES = Path(__file__).parents[2] / "fixtures"
TRACES = FIXTURES / "traces"


def test_times_without_a_unit_are_microseconds():
    trace = read_layer_trace(TRACES / "layers.csv")
    assert [layer.name for layer in trace.layers] == ["data", "conv1", "fc6"]
    conv = trace.layers[1]
    assert (conv.forward_seconds, conv.backward_seconds) == pytest.approx((3.2705e-3, 2.88202e-3))
    assert conv.communication_seconds == pytest.approx({0: 1.2304e-3})
    assert trace.gradient_bytes == 139776 + 151011328
    assert trace.warnings == ("rows not understood: 1",)


def test_headings_have_units_and_workers():
    trace = read_layer_trace(TRACES / "layers_units.tsv")
    assert trace.forward_seconds == pytest.approx(2e-3)
    assert trace.backward_seconds == pytest.approx(4e-3)
    assert {2, 8} == set(trace.layers[0].communication_seconds)
    assert trace.communication_seconds(8) == pytest.approx(1.3e-3)
    assert trace.gradient_bytes == 4 * 251000


def test_a_table_without_headings_has_the_usual_order():
    trace = read_layer_trace(TRACES / "layers_plain.txt")
    assert [layer.backward_seconds for layer in trace.layers] == pytest.approx([0.0, 200e-6])


def test_pydtnn_layers_leave_blocks_out():
    trace = read_layer_trace(TRACES / "pydtnn_blocks.trace.csv")
    assert [layer.name for layer in trace.layers] == ["01_Conv2D", "03_Conv2D", "04_Relu", "05_FC"]
    assert trace.forward_seconds == pytest.approx(0.45)
    assert trace.communication_seconds(0) == pytest.approx(0.15)
    assert trace.update_seconds == pytest.approx(0.02)


def test_caffe_time_is_a_layer_trace():
    trace = read_layer_trace(FIXTURES / "logs" / "caffe_time_recorded.log")
    assert trace.label == "ResNet20"
    assert trace.batch_per_worker == 32
    assert trace.layers[1].backward_seconds == pytest.approx(1.5706e-3)


def test_a_file_without_layers_is_an_error_for_the_user(tmp_path: Path):
    path = tmp_path / "empty.csv"
    path.write_text("")
    with pytest.raises(InputError, match="empty"):
        read_layer_trace(path)
    path.write_text("one two\nthree four\n")
    with pytest.raises(InputError, match="no readable row"):
        read_layer_trace(path)
