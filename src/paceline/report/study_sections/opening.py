"""Design and environment of a study."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from paceline.analysis.configurations import describe_emulation, describe_lab
from paceline.render.html_page import Section
from paceline.render.table import Column, Table
from paceline.report.study_analysis import StudyAnalysis
from paceline.report.study_sections.verdict import listed, question
from paceline.store import Launch
from paceline.units import format_bytes, plural

_VARIED: tuple[tuple[str, Callable[[Launch], Any]], ...] = (
    ("framework", lambda one: one.framework),
    ("model", lambda one: one.model),
    ("processes", lambda one: one.world_size),
    ("nodes", lambda one: one.nodes),
    ("samples per process", lambda one: one.batch_per_rank),
    ("precision", lambda one: one.precision),
    ("threads per process", lambda one: one.job.get("threads")),
    ("tokens per sample", lambda one: one.job.get("sequence")),
    ("optimiser", lambda one: (one.job.get("optimiser") or {}).get("name")),
    ("data", lambda one: (one.job.get("data") or {}).get("kind")),
    ("emulated device", describe_emulation),
    ("lab", describe_lab),
    ("timers inside the step", lambda one: one.instrument),
)
_LISTED = ("framework", "model", "processes", "batch", "precision", "threads", "instrument", "seq")
MOST_LEVELS = 12


def design_section(results: StudyAnalysis) -> Section:
    """Question, factors and controls, number of launches and their order."""
    return Section(
        "Design",
        text=f"{question(results)}\n\n{describe_replication(results)}",
        tables=[_levels_table(results.finished)],
        folded=True,
    )


def environment_section(results: StudyAnalysis) -> Section:
    """Machine, system and versions, with all values if launches differ."""
    facts = [
        ("processor", recorded(results.launches, "cpu_model")),
        ("cores", recorded(results.launches, "cores")),
        ("memory", recorded(results.launches, "memory_bytes", lambda value: format_bytes(value))),
        ("CPU frequency governor", recorded(results.launches, "governor")),
        ("kernel", recorded(results.launches, "kernel")),
        ("frameworks", ", ".join(versions(results.finished))),
        ("Python", recorded(results.launches, "python")),
        ("Paceline", recorded(results.launches, "paceline")),
        ("launcher", recorded(results.launches, "launcher")),
        ("load average before launches", describe_load(results.launches)),
    ]
    table = Table.of(
        [fact for fact in facts if fact[1]],
        (Column("property"), lambda fact: fact[0]),
        (Column("value"), lambda fact: fact[1]),
        note="Recorded with every launch; 'paceline study show LAUNCH' prints all of it.",
    )
    return Section("Environment", tables=[table], folded=True)


def describe_header(results: StudyAnalysis) -> str:
    """Batch, framework and machine, for the line below the title."""
    launches = results.finished
    if not launches:
        return f"Study {results.study}"
    batches = sorted({launch.batch_per_rank for launch in launches})
    frameworks = versions(launches)
    parts = [
        f"{listed(batches)} samples per process",
        ", ".join(frameworks) if len(frameworks) <= 3 else f"{len(frameworks)} frameworks",
        recorded(launches, "cpu_model"),
        f"{recorded(launches, 'cores')} cores" if recorded(launches, "cores") else "",
        f"study {results.study}",
    ]
    return " · ".join(part for part in parts if part)


def versions(launches: Sequence[Launch]) -> list[str]:
    """Each framework with its recorded version."""
    found: dict[str, str] = {}
    for launch in launches:
        version = launch.outcome.facts.get("versions", {}).get("framework")
        if version or launch.framework not in found:
            found[launch.framework] = version or ""
    return [
        text if text.startswith(f"{name} ") else f"{name} ({text})" if text else name
        for name, text in found.items()
    ]


def describe_load(launches: Sequence[Launch]) -> str:
    """The range of load averages before launches."""
    loads = [launch.outcome.facts.get("load_before") for launch in launches]
    known = [load for load in loads if load is not None]
    return f"{min(known):.1f} to {max(known):.1f}" if known else ""


def recorded(launches: Sequence[Launch], key: str, shown: Callable[[Any], str] = str) -> str:
    """All values of a property of the environment, each once."""
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
            rows.append((name, shown + more, "varied" if len(levels) > 1 else "constant"))
    rows.sort(key=lambda row: row[2] == "constant")
    return Table.of(
        rows,
        (Column("factor"), lambda row: row[0]),
        (Column("levels"), lambda row: row[1]),
        (Column(""), lambda row: row[2]),
        title="Factors and controls",
    )


def _factors(launches: Sequence[Launch]) -> list[tuple[str, Callable[[Launch], Any]]]:
    names = dict.fromkeys(name for one in launches for name in one.job.get("factors", {}))

    def level(name: str) -> Callable[[Launch], Any]:
        return lambda one: one.job.get("factors", {}).get(name)

    return [(name.replace("_", " "), level(name)) for name in names if name not in _LISTED]


def describe_replication(results: StudyAnalysis) -> str:
    groups = results.groups
    launches = [one for group in groups for one in group.launches]
    kinds = sorted({launch.provenance for launch in launches})
    each = sorted({len(group.launches) for group in groups})
    often = f"{each[0]}" if len(each) == 1 else f"{each[0]} to {each[-1]}" if each else "none"
    sentences = [
        f"{plural(len(launches), 'launch')} of {plural(len(groups), 'configuration')}, {often} of "
        f"each ({', '.join(kinds)}). The launch is the unit of replication: each restarts all "
        "processes, and intervals are over launches, never over steps."
    ]
    if excluded := len(results.launches) - len(launches):
        sentences.append(f"{plural(excluded, 'other launch')} gave no result.")
    steps = sorted({one.job["steps"] for one in launches if one.job.get("steps")})
    if steps:
        sentences.append(_describe_steps(launches, steps, results.design))
    return " ".join([*sentences, *_describe_order(results.design)])


def _describe_order(design: Mapping[str, Any]) -> list[str]:
    if "order" not in design:
        return []
    kind, seed = design.get("order_kind", "random"), f"seed {design.get('seed')}"
    sentences = {
        "random": [
            "Launches were planned in randomised blocks: every configuration once per block, in "
            f"random order ({seed}), so that drift of the machine affects all equally."
        ],
        "blocked": [
            "Launches were planned in blocks with every configuration once; within a block, those "
            f"with the same {design.get('block_by')} follow each other ({seed}): a split plot."
        ],
        "given": ["Launches ran in the given order, so drift of the machine affects results."],
    }.get(kind, [])
    rule = design.get("stopping")
    if rule:
        sentences.append(
            "Launches were added until the interval was within "
            f"± {rule['relative_half_width']:.1%} of the mean, at most {rule['most']} per "
            "configuration."
        )
    return sentences


def _describe_steps(
    launches: Sequence[Launch], steps: Sequence[int], design: Mapping[str, Any]
) -> str:
    warmups = sorted({one.warmup_steps for one in launches})
    if not design.get("detect_warmup"):
        return f"Each measures {listed(steps)} steps after {listed(warmups)} warm-up steps."
    runs = sorted({one.job["steps"] + one.job.get("warmup_steps", 0) for one in launches})
    left_out = f"{warmups[0]} to {warmups[-1]}" if len(warmups) > 1 else f"{warmups[0]}"
    return (
        f"Each runs {listed(runs)} steps; the first {left_out} of them are not counted, the "
        "warm-up that was detected in its step times."
    )
