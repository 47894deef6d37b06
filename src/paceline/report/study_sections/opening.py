"""What was asked, how it was tried, and on what machine."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from paceline.analyse.groups import emulated_words, lab_words
from paceline.analyse.study_analysis import StudyAnalysis
from paceline.report.page import Section
from paceline.report.study_sections.verdict import listed, question
from paceline.report.table import Column, Table
from paceline.store import Launch
from paceline.units import format_bytes

_VARIED: tuple[tuple[str, Callable[[Launch], Any]], ...] = (
    ("framework", lambda one: one.framework),
    ("model", lambda one: one.model),
    ("processes", lambda one: one.world_size),
    ("nodes", lambda one: one.nodes),
    ("samples per process", lambda one: one.batch_per_rank),
    ("precision", lambda one: one.precision),
    ("threads of a process", lambda one: one.job.get("threads")),
    ("tokens of a sample", lambda one: one.job.get("sequence")),
    ("optimiser", lambda one: (one.job.get("optimiser") or {}).get("name")),
    ("data", lambda one: (one.job.get("data") or {}).get("kind")),
    ("emulated device", emulated_words),
    ("lab", lab_words),
    ("timers inside the step", lambda one: one.instrument),
)
_TOLD = ("framework", "model", "processes", "batch", "precision", "threads", "instrument", "seq")
MOST_LEVELS = 12


def question_section(results: StudyAnalysis) -> Section:
    """The question, and which launches answer it."""
    return Section("Question", text=question(results))


def design_section(results: StudyAnalysis) -> Section:
    """What was varied and what was held, how often and in which order it ran."""
    return Section(
        "Design",
        text=_how_often(results),
        tables=[_levels_table(results.launches)],
    )


def environment_section(results: StudyAnalysis) -> Section:
    """Machine, system and versions; several values where launches differ."""
    facts = [
        ("processor", _told(results.launches, "cpu_model")),
        ("cores", _told(results.launches, "cores")),
        ("memory", _told(results.launches, "memory_bytes", lambda value: format_bytes(value))),
        ("governor of the clock", _told(results.launches, "governor")),
        ("system", _told(results.launches, "kernel")),
        ("frameworks", ", ".join(versions(results.launches))),
        ("Python", _told(results.launches, "python")),
        ("Paceline", _told(results.launches, "paceline")),
        ("load before launches", load_words(results.launches)),
    ]
    table = Table.of(
        [fact for fact in facts if fact[1]],
        (Column("what"), lambda fact: fact[0]),
        (Column("value"), lambda fact: fact[1]),
        note="Kept with every launch; paceline show LAUNCH has all of it.",
    )
    return Section("Environment", tables=[table])


def header_words(results: StudyAnalysis) -> str:
    """Model, batch, framework and machine, in the line below the title."""
    launches = results.launches
    if not launches:
        return f"Study {results.study}"
    batches = sorted({launch.batch_per_rank for launch in launches})
    frameworks = versions(launches)
    parts = [
        f"{listed(batches)} samples per process",
        ", ".join(frameworks) if len(frameworks) <= 3 else f"{len(frameworks)} frameworks",
        _told(launches, "cpu_model"),
        f"{_told(launches, 'cores')} cores" if _told(launches, "cores") else "",
        f"study {results.study}",
    ]
    return " · ".join(part for part in parts if part)


def versions(launches: Sequence[Launch]) -> list[str]:
    """Each framework with the version that its launches told."""
    told: dict[str, str] = {}
    for launch in launches:
        version = launch.outcome.facts.get("versions", {}).get("framework")
        if version or launch.framework not in told:
            told[launch.framework] = f"{launch.framework} {version}" if version else ""
    return [words or name for name, words in told.items()]


def load_words(launches: Sequence[Launch]) -> str:
    """The load averages before launches, from the lowest to the highest."""
    loads = [launch.outcome.facts.get("load_before") for launch in launches]
    known = [load for load in loads if load is not None]
    return f"{min(known):.1f} to {max(known):.1f}" if known else ""


def _told(launches: Sequence[Launch], key: str, shown: Callable[[Any], str] = str) -> str:
    values = dict.fromkeys(
        shown(launch.environment[key])
        for launch in launches
        if launch.environment.get(key) is not None
    )
    return ", ".join(values)


def _levels_table(launches: Sequence[Launch]) -> Table:
    rows = []
    for name, value in (*_VARIED, *_factors(launches)):
        levels = list(dict.fromkeys(v for one in launches if (v := value(one)) not in (None, "")))
        if levels:
            levels.sort(key=lambda level: (isinstance(level, str), level))
            shown = ", ".join(map(str, levels[:MOST_LEVELS]))
            more = f" and {len(levels) - MOST_LEVELS} more" if len(levels) > MOST_LEVELS else ""
            rows.append((name, shown + more, "varied" if len(levels) > 1 else "held"))
    rows.sort(key=lambda row: row[2] == "held")
    return Table.of(
        rows,
        (Column("what"), lambda row: row[0]),
        (Column("levels"), lambda row: row[1]),
        (Column(""), lambda row: row[2]),
        title="Varied and held",
    )


def _factors(launches: Sequence[Launch]) -> list[tuple[str, Callable[[Launch], Any]]]:
    names = dict.fromkeys(name for one in launches for name in one.job.get("factors", {}))

    def level(name: str) -> Callable[[Launch], Any]:
        return lambda one: one.job.get("factors", {}).get(name)

    return [(name.replace("_", " "), level(name)) for name in names if name not in _TOLD]


def _how_often(results: StudyAnalysis) -> str:
    launches, groups = results.launches, results.groups
    kinds = sorted({launch.provenance for launch in launches})
    each = sorted({len(group.launches) for group in groups})
    often = f"{each[0]}" if len(each) == 1 else f"{each[0]} to {each[-1]}" if each else "none"
    words = [
        f"{len(launches)} launches of {len(groups)} configurations, {often} of each "
        f"({', '.join(kinds)}). A launch is what is repeated: processes start afresh, and "
        "intervals are over launches, never over steps."
    ]
    steps = sorted({one.job["steps"] for one in launches if one.job.get("steps")})
    if steps:
        warmups = sorted({one.warmup_steps for one in launches})
        words.append(
            f"Each counts {listed(steps)} steps after {listed(warmups)} that are not counted."
        )
    return " ".join([*words, *_order_words(results.design)])


def _order_words(design: Mapping[str, Any]) -> list[str]:
    if "order" not in design:
        return []
    words = [
        "They ran in blocks with every configuration once, shuffled within each block "
        f"(seed {design.get('seed')}), so that a drift of the machine falls on all alike."
    ]
    rule = design.get("stopping")
    if rule:
        words.append(
            "Launches were added until the interval was within "
            f"± {rule['relative_half_width']:.1%} of the mean, at most {rule['most']} of a "
            "configuration."
        )
    if design.get("detect_warmup"):
        words.append("The warm-up of each launch was found by its change points.")
    return words
