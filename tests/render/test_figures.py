"""Every figure, with good numbers and with the worst: well-formed, inside its edges, escaped."""

import math
import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.render.figures import (
    BarSeries,
    BarsInfo,
    CollectiveInfo,
    CollectiveSeries,
    Crossover,
    GanttBar,
    GanttInfo,
    GanttLane,
    LayersInfo,
    LayerSize,
    LineSeries,
    LinesInfo,
    MessageSize,
    PhaseBar,
    PhasesInfo,
    RepeatedRow,
    RepetitionsInfo,
    ScalingInfo,
    ScalingPoint,
    ScalingSeries,
    ScatterGroup,
    ScatterInfo,
    ScatterPoint,
    UtilisationInfo,
    UtilisationLane,
    WaterfallInfo,
    draw,
    efficiency_table,
    figure,
    gantt_info,
    phase_bar,
    standalone,
    utilisation_info,
)
from paceline.render.figures.gantt import readable_width
from paceline.render.number_format import Ranged
from paceline.step import Phase, Task, breakdown
from paceline.step.schedule import schedule
from paceline.step.waterfall import ItemKind, Waterfall, WaterfallItem
from render.samples import all_infos, sample_step, scaling_series, throughput

SVG = "{http://www.w3.org/2000/svg}"
WIDTHS = [920.0, 400.0]
ANY = st.floats(allow_nan=True, allow_infinity=True)
NAME = st.text(max_size=30)
RANGED = st.builds(Ranged, ANY, ANY, ANY)


def several(strategy, most=4):
    return st.lists(strategy, max_size=most).map(tuple)


SCALING = st.builds(
    ScalingInfo,
    NAME,
    several(
        st.builds(
            ScalingSeries,
            NAME,
            several(st.builds(ScalingPoint, st.integers(-1, 10**9), RANGED)),
            st.booleans(),
        ),
        6,
    ),
)
LINES = st.builds(
    LinesInfo,
    NAME,
    NAME,
    several(st.builds(LineSeries, NAME, several(st.tuples(ANY, RANGED)))),
    several(st.builds(Crossover, ANY, ANY, NAME)),
    log_x=st.booleans(),
    log_y=st.booleans(),
)
BARS = st.integers(0, 4).flatmap(
    lambda n: st.builds(
        BarsInfo,
        NAME,
        st.tuples(*[NAME] * n),
        several(st.builds(BarSeries, NAME, st.tuples(*[st.none() | RANGED] * n))),
    )
)
UTILISATION = st.builds(
    UtilisationInfo,
    several(
        st.builds(
            UtilisationLane, NAME, st.dictionaries(NAME, st.tuples(ANY, ANY, ANY), max_size=3)
        )
    ),
    ANY,
)
GANTT = st.builds(
    GanttInfo,
    several(
        st.builds(
            GanttLane, NAME, several(st.builds(GanttBar, NAME, NAME, ANY, ANY, st.booleans()), 8)
        )
    ),
)
WATERFALL = st.builds(
    WaterfallInfo,
    st.builds(Waterfall, several(st.builds(WaterfallItem, NAME, st.floats(-1e9, 1e9), note=NAME))),
)
REPETITIONS = st.builds(
    RepetitionsInfo, NAME, several(st.builds(RepeatedRow, NAME, several(ANY), RANGED))
)
INFO = st.one_of(
    SCALING,
    REPETITIONS,
    LINES,
    BARS,
    UTILISATION,
    GANTT,
    WATERFALL,
    st.builds(
        PhasesInfo,
        several(st.builds(PhaseBar, NAME, st.dictionaries(NAME, ANY, max_size=4), ANY)),
    ),
    st.builds(
        LayersInfo,
        several(st.builds(LayerSize, NAME, ANY), 8),
        several(st.builds(MessageSize, ANY, st.integers(-2, 9), st.integers(-2, 9))),
    ),
    st.builds(
        CollectiveInfo,
        several(
            st.builds(
                CollectiveSeries,
                NAME,
                several(st.tuples(ANY, RANGED)),
                several(st.tuples(ANY, ANY)),
            )
        ),
    ),
    st.builds(
        ScatterInfo,
        several(
            st.builds(ScatterGroup, NAME, several(st.builds(ScatterPoint, ANY, ANY, NAME))),
        ),
    ),
)


def parsed(svg):
    root = ElementTree.fromstring(svg)
    left, top, width, height = map(float, root.get("viewBox").split())
    assert (left, top) == (0, 0)
    return root, width, height


def assert_marks_inside(svg):
    root, width, height = parsed(svg)
    for mark in root.iter():
        for name, value in mark.attrib.items():
            if name in {"x", "x1", "x2", "cx"}:
                assert -1 <= float(value) <= width + 1, (mark.tag, mark.attrib)
            elif name in {"y", "y1", "y2", "cy"}:
                assert -1 <= float(value) <= height + 1, (mark.tag, mark.attrib)
        if mark.tag == f"{SVG}rect":
            assert float(mark.get("x")) + float(mark.get("width")) <= width + 1
            assert float(mark.get("y")) + float(mark.get("height")) <= height + 1
            assert float(mark.get("width")) >= 0 and float(mark.get("height")) >= 0
        if mark.tag == f"{SVG}path":
            points = re.findall(r"(-?[\d.]+) (-?[\d.]+)", mark.get("d"))
            assert all(-6 <= float(x) <= width + 6 for x, _ in points), mark.attrib
            assert all(-6 <= float(y) <= height + 6 for _, y in points), mark.attrib


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", list(all_infos()))
def test_samples_are_drawn_inside_their_edges(name, width):
    svg = draw(all_infos()[name], width)
    assert_marks_inside(svg)
    root, drawn_width, _ = parsed(svg)
    assert drawn_width == width
    assert root[0].tag == f"{SVG}title" and root[1].text


@settings(max_examples=300, deadline=None)
@given(INFO, st.sampled_from(WIDTHS))
@pytest.mark.thorough
def test_no_numbers_and_no_names_break_a_figure(info, width):
    assert_marks_inside(draw(info, width))


@pytest.mark.parametrize("name", list(all_infos()))
def test_figures_use_classes_only_so_that_the_policy_of_the_page_holds(name):
    root, *_ = parsed(draw(all_infos()[name]))
    for mark in root.iter():
        assert mark.tag != f"{SVG}style"
        assert not {"style", "fill", "stroke", "id", "onclick"} & set(mark.attrib)


def test_a_higher_value_is_drawn_higher():
    info = ScalingInfo("speed-up", (scaling_series("one", 1, 0.1, (1, 2, 4, 8)),))
    root, *_ = parsed(draw(info))
    markers = root.findall(f".//{SVG}circle[@class='marker']")
    xs = [float(mark.get("cx")) for mark in markers][1:]
    ys = [float(mark.get("cy")) for mark in markers][1:]
    assert xs == sorted(xs) and ys == sorted(ys, reverse=True)


def test_the_ideal_line_is_neutral_if_shared_and_coloured_otherwise():
    same = tuple(scaling_series(name, 1, loss) for name, loss in (("a", 0.1), ("b", 0.2)))
    other = tuple(scaling_series(name, base, 0.1) for name, base in (("a", 100), ("b", 300)))
    shared, own = draw(ScalingInfo("speed-up", same)), draw(ScalingInfo("img/s", other))
    assert 'class="neutral ideal"' in shared and 'class="c1 ideal"' not in shared
    assert 'class="c1 ideal"' in own and 'class="c2 ideal"' in own


def test_a_prediction_has_no_ideal_line_next_to_a_measurement():
    measured = scaling_series("measured", 100, 0.1)
    predicted = scaling_series("predicted", 300, 0.1, is_predicted=True)
    both = draw(ScalingInfo("img/s", (measured, predicted)))
    alone = draw(ScalingInfo("img/s", (predicted,)))
    assert both.count(' ideal"') == alone.count(' ideal"') == 1


def test_the_bars_of_a_waterfall_touch():
    info = all_infos()["Waterfall"]
    root, *_ = parsed(draw(info))
    rects = list(root.iter(f"{SVG}rect"))
    edges = [(float(r.get("x")), float(r.get("x")) + float(r.get("width"))) for r in rects]
    for (_, end), (start, _) in pairwise(edges[:-1]):
        assert end == pytest.approx(start, abs=0.25)
    assert edges[-1][0] == edges[0][0]


def test_phases_stack_to_the_whole_step():
    bar = phase_bar("step", breakdown(sample_step()))
    assert bar.total_seconds == pytest.approx(sample_step().seconds)
    assert bar.hidden_seconds == pytest.approx(0.14)


def test_the_timeline_has_a_lane_per_rank_and_resource_and_marks_the_critical_path():
    info = gantt_info(sample_step())
    assert [lane.label for lane in info.lanes][:3] == [
        "rank 0 · input",
        "rank 0 · compute",
        "rank 0 · network",
    ]
    assert len(info.lanes) == 6
    assert sum(bar.is_critical for lane in info.lanes for bar in lane.bars) == 27
    assert gantt_info(sample_step(), ranks=[1]).lanes[0].label == "input"


@pytest.mark.thorough
def test_a_timeline_of_many_tasks_stays_small_and_keeps_its_length():
    phases = (Phase.FORWARD, Phase.BACKWARD)
    tasks = [Task(f"t{n}", phases[n % 2], "compute", 1e-6, rank=n % 8) for n in range(40_000)]
    svg = draw(gantt_info(schedule(tasks)))
    assert len(svg) < 150_000
    root, *_ = parsed(svg)
    lane = [r for r in root.iter(f"{SVG}rect") if r.get("height") == "20"]
    assert max(float(r.get("x")) + float(r.get("width")) for r in lane) > 900


def test_a_schedule_of_many_passes_is_wide_enough_for_their_numbers():
    tasks = [
        Task(f"{kind} {n} chunk {chunk}", phase, "compute", seconds)
        for chunk in range(8)
        for n in range(8)
        for kind, phase, seconds in (
            ("forward", Phase.FORWARD, 1.0),
            ("backward", Phase.BACKWARD, 2.0),
        )
    ]
    info = gantt_info(schedule(tasks))
    numbers = [
        draw(info, width).count('class="number') for width in (400, readable_width(info, 400))
    ]
    assert numbers[0] < len(tasks) == numbers[1]
    assert readable_width(gantt_info(sample_step()), 400.0) == 400.0


def test_the_label_of_a_crossover_is_not_on_a_curve():
    def label_height(*heights):
        points = zip((1.0, 10.0), map(Ranged, heights), strict=True)
        curve = LineSeries("a", tuple(points))
        info = LinesInfo("x", "y", (curve,), (Crossover(2.0, 50.0, "a from here"),))
        root, *_ = parsed(draw(info))
        return next(float(t.get("y")) for t in root.iter(f"{SVG}text") if t.text == "a from here")

    assert label_height(100.0, 100.0) > label_height(0.0, 0.0)


def test_lanes_that_are_not_drawn_are_counted():
    tasks = [Task("t", Phase.FORWARD, "compute", 1.0, rank=rank) for rank in range(40)]
    info = gantt_info(schedule(tasks))
    assert len(info.lanes) == 24 and info.left_out == 16
    assert "16 more lanes not drawn" in draw(info)


def test_use_of_resources_is_busy_time_over_time():
    step = sample_step()
    info = utilisation_info(step, bins=50)
    for lane in info.lanes:
        busy = sum(task.seconds for task, _ in step.on(lane.label)) / len(step.ranks)
        drawn = sum(map(sum, lane.shares.values())) / 50 * step.seconds
        assert drawn == pytest.approx(busy)
        assert all(share <= 1 + 1e-9 for shares in lane.shares.values() for share in shares)


def test_a_step_without_tasks_is_drawn_empty():
    empty = schedule([])
    for info in (gantt_info(empty), utilisation_info(empty)):
        assert_marks_inside(draw(info))


def test_the_efficiency_table_has_the_published_form():
    published = ScalingSeries(
        "PyTorch DDP",
        tuple(ScalingPoint(n, Ranged(v)) for n, v in ((1, 100.0), (4, 380.0), (12, 1011.0))),
    )
    later = ScalingSeries(
        "MXNet", (ScalingPoint(4, Ranged(300.0)), ScalingPoint(12, Ranged(600.0)))
    )
    table = efficiency_table([published, later], "img/s", "GPU")
    assert [column.title for column in table.columns][3:] == ["4 GPUs", "12 GPUs"]
    assert table.rows[0][3:] == ("3.80 (95 %)", "10.1 (84 %)")
    assert table.rows[1] == ("MXNet", 4, Ranged(300.0), "1.00 (100 %)", "2.00 (67 %)")
    assert len(efficiency_table([ScalingSeries("nothing", ())], "img/s").rows) == 1


def test_a_full_width_figure_is_drawn_twice_and_a_half_one_once():
    wide = figure("Scaling", throughput())
    half = figure("Scaling", throughput(), half=True)
    assert 'width="920"' in wide.svg and 'width="400"' in wide.narrow_svg
    assert half.svg == half.narrow_svg == wide.narrow_svg


def test_a_standalone_drawing_contains_its_style():
    root, *_ = parsed(standalone(draw(throughput())))
    assert "--communicate" in root.find(f"{SVG}style").text


def test_infinite_values_are_omitted_and_the_rest_is_drawn():
    series = ScalingSeries(
        "one", tuple(ScalingPoint(n, Ranged(v)) for n, v in ((1, 1.0), (2, math.nan), (4, 3.0)))
    )
    root, *_ = parsed(draw(ScalingInfo("speed-up", (series,))))
    assert len(root.findall(f".//{SVG}circle[@class='marker']")) == 1 + 2


def test_a_waterfall_of_small_losses_begins_below_them():
    ideal = WaterfallItem("ideal step", 1.0, ItemKind.IDEAL)
    small, large = (
        draw(WaterfallInfo(Waterfall.between(ideal, total, [WaterfallItem("jitter", 0.04)])), 920.0)
        for total in (1.05, 3.0)
    )
    assert "axis does not begin at 0" in small and 'class="break"' in small
    assert "axis does not begin at 0" not in large and 'class="break"' not in large
    widths = [float(width) for width in re.findall(r'<rect[^>]* width="([\d.]+)"', small)]
    assert widths[1] > 200  # 0.04 of 1.05 s is a third of the drawing, not 4 %
