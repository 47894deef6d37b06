"""Write docs/reference/options.md from the declarations of options.

Run it with the project's interpreter: ``.venv/bin/python tools/option_reference.py``.
"""

import sys
from pathlib import Path

from paceline.cli.knob_options import metavar_of
from paceline.spec.job_options import JobArguments
from paceline.spec.knob import KnobField, knobs_of
from paceline.spec.search_options import AxisOptions, SearchOptions, SweepOptions
from paceline.spec.study_options import StudyOptions
from paceline.spec.training_options import TrainingOptions

FILE = Path(__file__).parents[1] / "docs" / "reference" / "options.md"
HEAD = """# Options

`tools/option_reference.py` generates this page from the declarations in `src/paceline/spec`. An
option has the same name on the command line, as a keyword in Python, in TOML files and in JSON.
`None`, or leaving an option out, selects the default. An option whose value ends in `[,...]`
accepts several values, comma-separated on the command line or a list in Python; the result has one
row for each value.
"""
PARTS = (
    (
        "Predictions",
        "Options of `predict`, `whatif`, `bandwidth_for` and `advise`. In `advise`, options of\n"
        "the plan constrain the search. `sweep` has those marked with *.",
        JobArguments,
    ),
    ("Search", "Options of `advise`.", SearchOptions),
    ("Sweep", "Options of `sweep`.", AxisOptions),
    ("Training run", "Options of `predict` and `advise`.", TrainingOptions),
    ("Studies", "Options of `measure`, keywords of `Study`, keys of study files.", StudyOptions),
)


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(_part(*part) for part in PARTS)]).rstrip() + "\n"


def _part(title: str, text: str, spec: type) -> str:
    groups: dict[str, list[KnobField]] = {}
    for knob in knobs_of(spec).values():
        groups.setdefault(knob.knob.group, []).append(knob)
    swept = {*SweepOptions.__annotations__, "model", "cluster"} if spec is JobArguments else set()
    tables = [_table("" if group == title else group, own, swept) for group, own in groups.items()]
    return "\n".join([f"## {title}\n", f"{text}\n", *tables])


def _table(group: str, knobs: list[KnobField], swept: set[str]) -> str:
    heading = [f"### {group}\n"] if group else []
    rows = ["| option | keyword | value | default | meaning |", "|---|---|---|---|---|"]
    return "\n".join([*heading, *rows, *(_row(knob, knob.name in swept) for knob in knobs), ""])


def _row(knob: KnobField, swept: bool) -> str:
    spelling = f"`{knob.option}`"
    if knob.has_negation:
        spelling = f"{spelling}, `{knob.negation}`"
    name = f"`{knob.name}`" + ("*" if swept else "")
    value = "" if knob.kind is bool else f"`{metavar_of(knob)}`".replace("|", "\\|")
    usual = knob.knob.default or ("" if knob.default in (None, ()) else str(knob.default))
    return f"| {spelling} | {name} | {value} | {usual} | {knob.knob.help} |"


if __name__ == "__main__":
    FILE.write_text(page(), encoding="utf-8")
    sys.exit(0)
