"""Scripts that draw the CSV file of a figure with matplotlib, to be adapted to a journal."""

_HEAD = """# Draws {name}.csv: {title}. Adapt fonts and size to the journal.
import csv
from pathlib import Path

import matplotlib.pyplot as plt

here = Path(__file__).parent
with (here / "{name}.csv").open(newline="", encoding="utf-8") as file:
    rows = list(csv.DictReader(file))
number = lambda row, name: float(row[name]) if row.get(name) else float("nan")
labels = list(dict.fromkeys(row.get("label", "") for row in rows))
figure, axes = plt.subplots(figsize=(5.0, 3.0))
"""
# The part separates measured points from a fitted line, and curves from their crossovers.
_CURVES = """parts = [(row.get("label", ""), row.get("part", "")) for row in rows]
for label, part in dict.fromkeys(parts):
    own = [row for row, name in zip(rows, parts) if name == (label, part)]
    label += ", fitted" if part == "fitted" else ""
    x, y = ([number(row, name) for row in own] for name in ("{x}", "{y}"))
    below = [max(0.0, b - number(row, "low")) for b, row in zip(y, own)]
    above = [max(0.0, number(row, "high") - b) for b, row in zip(y, own)]
    known = all(e == e for e in [*below, *above])
    axes.errorbar(x, y, yerr=[below, above] if known else None, marker="o", label=label)
axes.set(xlabel="{x_title}", ylabel="{y_title}"{log})
axes.legend()
"""
_WATERFALL = """start, total = 0.0, sum(number(row, "seconds") for row in rows)
for place, row in enumerate(rows):
    seconds = number(row, "seconds")
    colour = "C0" if row["kind"] == "ideal" else "C1"
    axes.barh(place, 1e3 * seconds, left=1e3 * start, color=colour)
    start += seconds
axes.barh(len(rows), 1e3 * total, color="C0")
axes.set_yticks(range(len(rows) + 1), [*labels, "{real}"])
axes.invert_yaxis()
axes.set(xlabel="step time (ms)")
"""
_DOTS = """for place, label in enumerate(labels):
    values = [number(row, "value") for row in rows if row["label"] == label]
    axes.plot(values, [place] * len(values), "o", alpha=0.6)
axes.set_yticks(range(len(labels)), labels)
axes.invert_yaxis()
axes.set(xlabel="{title}")
"""
_STACKS = """names = list(dict.fromkeys(row["name"] for row in rows))
for place, label in enumerate(labels):
    left = 0.0
    for row in (row for row in rows if row["label"] == label):
        colour = f"C{{names.index(row['name']) % 10}}"
        axes.barh(place, 1e3 * number(row, "value"), left=left, color=colour)
        left += 1e3 * number(row, "value")
axes.set_yticks(range(len(labels)), labels)
axes.invert_yaxis()
for at, name in enumerate(names):
    axes.barh(0, 0, color=f"C{{at % 10}}", label=name)
axes.legend(ncol=4, loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize="small")
axes.set(xlabel="step time (ms)")
"""
_SPANS = """phases = list(dict.fromkeys(row["phase"] for row in rows))
for place, label in enumerate(labels):
    for at, phase in enumerate(phases):
        own = [row for row in rows if row["label"] == label and row["phase"] == phase]
        spans = [(1e3 * number(row, "start_seconds"), 1e3 * number(row, "seconds")) for row in own]
        axes.broken_barh(spans, (place - 0.4, 0.8), color=f"C{{at % 10}}")
for at, phase in enumerate(phases):
    axes.barh(0, 0, color=f"C{{at % 10}}", label=phase)
axes.legend(ncol=4, loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize="small")
axes.set_yticks(range(len(labels)), labels)
axes.invert_yaxis()
axes.set(xlabel="time in the step (ms)")
"""
_BARS = """groups = list(dict.fromkeys(row["group"] for row in rows))
for at, label in enumerate(labels):
    own = [row for row in rows if row["label"] == label]
    places = [groups.index(row["group"]) + at / (len(labels) + 1) for row in own]
    axes.bar(places, [number(row, "value") for row in own], 1 / (len(labels) + 1), label=label)
axes.set_xticks(range(len(groups)), groups, rotation=20, ha="right")
axes.set(ylabel="{title}")
axes.legend()
"""
_SCATTER = """for label in labels:
    own = [row for row in rows if row["label"] == label]
    measured, predicted = ([number(row, name) for row in own] for name in ("measured", "predicted"))
    axes.scatter(measured, predicted, s=12, label=label)
axes.set(xscale="log", yscale="log", xlabel="measured", ylabel="predicted")
axes.axline((1, 1), (10, 10), color="grey", linewidth=0.8)
axes.legend()
"""
_SHARES = """names = list(dict.fromkeys(row["name"] for row in rows))
for place, label in enumerate(labels):
    below = {{}}
    for row in (row for row in rows if row["label"] == label):
        slices = 1 + max(int(r["index"]) for r in rows if r["label"] == label)
        width, slot = 1e3 * number(row, "seconds") / slices, int(row["index"])
        bottom, share = below.get(slot, 0.0), 0.9 * number(row, "value")
        colour = f"C{{names.index(row['name']) % 10}}"
        axes.bar((slot + 0.5) * width, share, width, len(labels) - 1 - place + bottom, color=colour)
        below[slot] = bottom + share
for at, name in enumerate(names):
    axes.bar(0, 0, color=f"C{{at % 10}}", label=name)
axes.legend(ncol=4, loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize="small")
axes.set_yticks([len(labels) - 0.55 - place for place in range(len(labels))], labels)
axes.set(xlabel="time in the step (ms)")
"""
_LAYERS = """layers = [row for row in rows if row["part"] == "layers"]
axes.bar(range(len(layers)), [number(row, "gradient_bytes") for row in layers], label="layer")
for row in (row for row in rows if row["part"] == "messages"):
    first, last, size = (number(row, name) for name in ("first", "last", "size_bytes"))
    axes.plot([first - 0.4, last + 0.4], [size, size], color="C1")
axes.plot([], [], color="C1", label="message and its layers")
axes.legend()
axes.set(xlabel="layers, in the order of the backward pass", ylabel="gradient (bytes)")
"""
_TAIL = """figure.tight_layout()
figure.savefig(here / "{name}-matplotlib.pdf", bbox_inches="tight")
"""


def matplotlib_script(info: object, title: str, name: str) -> str:
    """The script for the figure ``info``, whose data is NAME.csv; empty for kinds without one."""
    kind = type(info).__name__
    if kind not in _BODIES:
        return ""
    body, given = _BODIES[kind]
    texts = {key: _quoted(getattr(info, own, own)) for key, own in given.items()}
    logarithmic = [axis for axis in "xy" if getattr(info, f"log_{axis}", kind == "CollectiveInfo")]
    texts["log"] = "".join(f', {axis}scale="log"' for axis in logarithmic)
    head = _HEAD.format(name=name, title=" ".join(title.split()))
    return head + body.format(**texts) + _TAIL.format(name=name)


def _quoted(text: object) -> str:
    """Text between double quotes of a script."""
    return " ".join(str(text).split()).replace("\\", "/").replace('"', "'")


_BODIES: dict[str, tuple[str, dict[str, str]]] = {
    "ScalingInfo": (
        _CURVES,
        {"x": "devices", "y": "value", "x_title": "device_title", "y_title": "title"},
    ),
    "LinesInfo": (_CURVES, {"x": "x", "y": "y", "x_title": "x_title", "y_title": "y_title"}),
    "CollectiveInfo": (
        _CURVES,
        {"x": "x", "y": "y", "x_title": "message size (bytes)", "y_title": "seconds"},
    ),
    "WaterfallInfo": (_WATERFALL, {"real": "real_label"}),
    "RepetitionsInfo": (_DOTS, {"title": "title"}),
    "PhasesInfo": (_STACKS, {}),
    "GanttInfo": (_SPANS, {}),
    "HeatmapInfo": (_SPANS, {}),
    "UtilisationInfo": (_SHARES, {}),
    "LayersInfo": (_LAYERS, {}),
    "BarsInfo": (_BARS, {"title": "title"}),
    "ScatterInfo": (_SCATTER, {}),
}
"""The drawing part of the script by kind of figure, and the attributes for its titles."""
