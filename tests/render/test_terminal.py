import contextlib
import io
import unicodedata

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from paceline.cli.output import show
from paceline.render.safe_text import display_width
from paceline.render.table import Column, Table
from paceline.render.terminal import print_table, prose, table_lines, terminal_width
from paceline.render.terminal_waterfall import print_waterfall, waterfall_heading, waterfall_lines
from paceline.step.waterfall import ItemKind, Waterfall, WaterfallItem
from render.samples import sample_table, sample_waterfall


def test_the_waterfall_is_as_in_the_tour():
    waterfall = sample_waterfall()
    assert waterfall_heading(waterfall, "Where the second process goes") == (
        "Where the second process goes (ms per step, 683 measured, 625 ideal)"
    )
    assert waterfall_lines(waterfall.items) == [
        "  ideal step ...........  625  ██████████████████████████████",
        "  co-located ranks ..... + 41  ██          memory bandwidth and cache shared",
        "  jitter ............... + 10  ▌",
        "  exposed all-reduce ... +  6  ▎           1 bucket of 2.6 MB",
        "  unattributed ......... +  1",
    ]


def test_negative_items_have_a_minus_and_a_light_bar():
    items = [WaterfallItem("ideal", 1.0, ItemKind.IDEAL), WaterfallItem("cache", -0.1)]
    assert waterfall_lines(items)[1] == "  cache ... -  100  ░░░"


def test_no_items_no_lines():
    assert waterfall_lines([]) == []


@given(
    st.lists(
        st.builds(
            WaterfallItem,
            st.text(max_size=60),
            st.floats(-1e6, 1e6),
            st.sampled_from(ItemKind),
            st.text(max_size=120),
        ),
        max_size=6,
    ),
    st.integers(40, 100),
)
def test_no_line_is_wider_than_the_terminal_or_controls_it(items, width):
    for line in waterfall_lines(items, width):
        assert display_width(line) <= width
        assert not any(unicodedata.category(character) == "Cc" for character in line)


def test_a_table_aligns_its_numbers():
    lines = table_lines(sample_table())
    assert lines[0] == "Predicted and measured"
    body = [line for line in lines if "process" in line or "nodes" in line]
    assert body[0].startswith("1 process    102.4 ± 1.9      –")
    assert body[1].startswith("2 processes  187.6 ± 4.1    190 [178, 202]       +1.4      205")
    assert len({line.index("[") for line in body[1:]}) == 1
    assert lines[-1] == "± and [ ] are 95 % intervals over launches."


@pytest.mark.parametrize("width", [100, 72, 40])
def test_a_wide_table_continues_below_and_loses_no_number(width):
    lines = table_lines(sample_table(), width)
    assert max(map(display_width, lines)) <= width
    text = "\n".join(lines)
    for number in ("187.6 ± 4.1", "1,540 [1,380, 1,660]", "1,638", "+1.4"):
        assert number in text


def checks_table():
    fix = "run 'paceline frameworks install horovod-tensorflow', or set $PACELINE_PYTHON"
    return Table(
        (Column("check"), Column("works"), Column("details"), Column("fix")),
        (
            ("machine", "yes", "AMD EPYC, 2 cores", ""),
            ("train with horovod-tensorflow", "no", "", fix),
            ("idle enough to measure", "no", "load average 4.6", "stop other programs"),
        ),
        title="This machine",
    )


def test_a_table_uses_the_width_that_there_is():
    assert table_lines(checks_table(), 130) == [
        "This machine",
        "check                          works  details            fix",
        "machine                        yes    AMD EPYC, 2 cores",
        "train with horovod-tensorflow  no                        run 'paceline frameworks install "
        "horovod-tensorflow', or set",
        " " * 57 + "$PACELINE_PYTHON",
        "idle enough to measure         no     load average 4.6   stop other programs",
    ]
    assert table_lines(checks_table(), 60) == [
        "This machine",
        "check                          works  details",
        "    fix",
        "machine                        yes    AMD EPYC, 2 cores",
        "train with horovod-tensorflow  no",
        "    run 'paceline frameworks install horovod-tensorflow', or",
        "    set $PACELINE_PYTHON",
        "idle enough to measure         no     load average 4.6",
        "    stop other programs",
    ]


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 160, 200])
def test_no_name_number_or_command_is_cut(width):
    for table in (checks_table(), sample_table()):
        text = " ".join(" ".join(table_lines(table, width)).split())
        words = [
            word
            for row in table.rows
            for cell in row
            if isinstance(cell, str)
            for word in cell.split()
        ]
        assert all(word in text for word in words) and "…" not in text


@pytest.mark.parametrize(("columns", "width"), [("20", 40), ("97", 97), ("160", 160), ("500", 200)])
def test_text_is_as_wide_as_the_terminal(monkeypatch, columns, width):
    monkeypatch.setenv("COLUMNS", columns)
    assert terminal_width() == width
    lines = prose("note: " + "word " * 100, " " * 6)
    assert width - 5 < max(map(len, lines)) <= width
    assert all(line.startswith("      word") for line in lines[1:])


def test_a_word_that_is_wider_than_the_terminal_is_not_cut():
    path = "/" + "x" * 60
    assert path in prose(f"wrote {path}", width=40)


def test_verdicts_are_coloured():
    rows = (("a", "does NOT fit"), ("b", "yes"), ("c", "slower by 2 %"))
    table = Table((Column("plan"), Column("verdict")), rows)
    text = printed(print_table, table, force_terminal=True, color_system="standard")
    assert "\x1b[1;31mdoes NOT fit" in text
    assert "\x1b[32myes" in text and "\x1b[33mslower" in text


def test_headings_and_prose_are_no_verdicts():
    table = Table((Column("plan"), Column("faster")), (("a", "yes"),), note="What is faster?")
    text = printed(print_table, table, force_terminal=True, color_system="standard")
    assert text.count("\x1b[32m") == 1 and "\x1b[32myes" in text


def test_notes_and_sentences_wrap_and_commands_do_not(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    command = f"paceline predict {'--model resnet50 ' * 4}"
    context = click.Context(click.Command("paceline"), info_name="paceline")
    with context, contextlib.redirect_stdout(io.StringIO()) as shown:
        show([f"note: {'word ' * 12}end", f"{'Word ' * 12}end.", command])
    *lines, last = shown.getvalue().splitlines()
    assert max(map(len, lines)) <= 40 and last == command
    assert lines[1].startswith("      word")


def test_hostile_text_cannot_reach_the_terminal():
    table = Table((Column("na\x1bme"),), (("evil\x1b[2J\x07\nrow",),), title="\x1b]0;t\x07")
    assert not set("\n".join(table_lines(table))) & {"\x1b", "\x07"}


def test_wide_characters_are_counted_as_two_columns():
    table = Table((Column("model"), Column("n")), (("日本語", 1), ("abc", 22)))
    assert {display_width(line) for line in table_lines(table)} == {10}


def printed(function, *arguments, **options):
    stream = io.StringIO()
    console = Console(file=stream, width=80, highlight=False, **options)
    function(*arguments, console=console)
    return stream.getvalue()


def test_output_without_colour_has_the_same_text():
    plain = printed(print_waterfall, sample_waterfall(), "Where it goes")
    coloured = printed(
        print_waterfall,
        sample_waterfall(),
        "Where it goes",
        force_terminal=True,
        color_system="standard",
    )
    assert "\x1b[" in coloured and "\x1b[" not in plain
    assert plain.splitlines()[1:] == waterfall_lines(sample_waterfall().items, 100)[:]


def test_a_printed_table_is_its_lines(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    table = sample_table()
    assert printed(print_table, table).splitlines() == table_lines(table)


def test_an_empty_table_prints_its_headings():
    assert table_lines(Table((Column("model"), Column("step", "ms")), ())) == [
        "       step",
        "model  (ms)",
    ]
    assert table_lines(Table((), ())) == []


def test_an_empty_waterfall_has_a_heading():
    assert (
        waterfall_heading(Waterfall(()), "Nothing") == "Nothing (s per step, 0 measured, 0 ideal)"
    )
