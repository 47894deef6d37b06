from paceline.render.figures.line_chart import Crossover, LineSeries, LinesInfo
from paceline.render.number_format import Ranged
from paceline.render.terminal_lines import lines_text


def series(label, points):
    return LineSeries(label, tuple((x, Ranged(y)) for x, y in points))


RISING = series("rising", [(1.0, 1.0), (10.0, 10.0), (100.0, 100.0)])
FLAT = series("flat", [(1.0, 10.0), (10.0, 10.0), (100.0, 10.0)])


def test_a_rising_curve_goes_from_the_lower_left_to_the_upper_right():
    lines = lines_text(LinesInfo("x", "y", (RISING,), log_x=True, log_y=True), width=50, height=9)
    rows = [line.partition("│")[2] for line in lines if "│" in line]
    assert rows[0].index("●") > rows[4].index("●") > rows[-1].index("●") == 0
    assert all(len(line) <= 50 for line in lines)


def test_curves_have_marks_of_their_own_and_a_legend():
    text = "\n".join(lines_text(LinesInfo("link, B/s", "samples/s", (RISING, FLAT)), width=60))
    assert "● rising" in text and "○ flat" in text
    assert "link, B/s" in text and "samples/s" in text


def test_a_crossover_is_a_dotted_line_at_its_position():
    info = LinesInfo("x", "y", (RISING, FLAT), (Crossover(10.0, 10.0),), log_x=True, log_y=True)
    rows = [line.partition("│")[2] for line in lines_text(info, width=53, height=9) if "│" in line]
    assert {row.index("┊") for row in rows if "┊" in row} == {20}


def test_nothing_to_draw_is_no_figure():
    assert lines_text(LinesInfo("x", "y", ())) == []


def test_a_single_point_is_drawn():
    text = lines_text(LinesInfo("x", "y", (series("one", [(5.0, 7.0)]),)))
    assert any("●" in line for line in text)
