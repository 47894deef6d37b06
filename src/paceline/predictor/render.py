"""A prediction in words: for the terminal, for a notebook, and what bounds it in one line."""

import math
import textwrap
from html import escape
from typing import TYPE_CHECKING

from paceline.predictor.step_builder import NETWORK, REPLICA_LINK
from paceline.step import Phase
from paceline.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from paceline.hardware import Cluster
    from paceline.predictor.prediction import Prediction

_NEAR_IDEAL = 0.9
_WORTH_A_WORD = 1e-4
_WIDTH = 100
RECOMPUTATION = "recomputation"
"""The loss that is arithmetic, so as certain as that of the network itself."""


def bound_by(prediction: "Prediction") -> str:
    """The largest loss against the ideal; the arithmetic where nothing is lost."""
    losses = losses_seconds(prediction)
    name, seconds = max(losses.items(), key=lambda item: item[1], default=("", 0.0))
    if prediction.efficiency >= _NEAR_IDEAL or seconds <= 0:
        return "arithmetic"
    if name == "network":
        return f"network: {_traffic(prediction)}"
    return name


def losses_seconds(prediction: "Prediction") -> dict[str, float]:
    """Seconds per step that the slowest rank spends on other things than its share of work."""
    exposed = prediction.breakdown.exposed
    within = _exposed_on(prediction, REPLICA_LINK)
    communication = exposed.get(Phase.COMMUNICATE, 0.0)
    computing = prediction.compute_seconds
    idle = exposed.get(Phase.WAIT, 0.0)
    feeding = exposed.get(Phase.INPUT, 0.0) + exposed.get(Phase.COPY, 0.0)
    own = prediction.ideal_seconds - prediction.ideal_input_seconds
    known = own + prediction.sharing_seconds + prediction.waiting_seconds
    unequal = min(prediction.division_seconds, max(0.0, computing - known))
    left = max(0.0, computing - known - unequal)
    again = min(prediction.recomputing_seconds, left)
    pipelined = prediction.plan.pp > 1
    return {
        "network": max(0.0, communication - within),
        "links within a replica": within,
        "pipeline bubble" if pipelined else "idle": idle,
        "input": max(0.0, feeding - prediction.ideal_input_seconds),
        "sharing the machine": prediction.sharing_seconds,
        "waiting for the slowest": prediction.waiting_seconds,
        **({_unequal_work(prediction): unequal} if prediction.division_seconds else {}),
        **({RECOMPUTATION: again} if again else {}),
        "memory traffic, overheads": left - again,
    }


def _unequal_work(prediction: "Prediction") -> str:
    experts = ["unequal experts"] if prediction.plan.ep > 1 else []
    return ", ".join([*experts, *["attention in parts"] * (prediction.plan.cp > 1)])


def as_text(prediction: "Prediction") -> str:
    """A few lines for a terminal."""
    lines = _wrapped(headline(prediction), "  ")
    for name, words in _facts(prediction):
        lines += _wrapped(f"  {name:<11} {words}", " " * 14)
    return "\n".join(lines)


def as_html(prediction: "Prediction") -> str:
    """A small table for a notebook."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:left'>{escape(text)}</td></tr>"
        for name, text in _facts(prediction)
    )
    return f"<table><caption>{escape(headline(prediction))}</caption>{rows}</table>"


def headline(prediction: "Prediction") -> str:
    """What was predicted: model, batch, place, plan, framework."""
    workload, cluster, plan = prediction.workload, prediction.cluster, prediction.plan
    sequence = f" x {workload.sequence} tokens" if workload.sequence is not None else ""
    size, count = plan.batches(workload.batch)
    parts = f" in {count} micro-batches of {size}" if count > 1 else ""
    return (
        f"{workload.graph.name}, batch {workload.batch}{sequence}{parts}, {workload.precision} on "
        f"{cluster.name} {cluster.nodes}x{cluster.devices_per_node}, {plan.label}, "
        f"{prediction.framework}"
    )


def _wrapped(line: str, indent: str) -> list[str]:
    return textwrap.wrap(
        line, _WIDTH, subsequent_indent=indent, drop_whitespace=True, break_long_words=False
    )


def _facts(prediction: "Prediction") -> list[tuple[str, str]]:
    low, high = prediction.step_interval_seconds
    slow, fast = map(rate_text, prediction.samples_per_second_interval)
    interval = f"[{format_seconds(low)}, {format_seconds(high)}]"
    facts = [
        ("step", f"{format_seconds(prediction.step_seconds)} {interval}, 90 %"),
        (
            "throughput",
            f"{rate_text(prediction.samples_per_second)} samples/s [{slow}, {fast}]"
            f"{_tokens(prediction)}, efficiency {prediction.efficiency:.0%}",
        ),
        ("per device", f"{device_rate_text(prediction)}, {utilisation_text(prediction)}"),
        *_links(prediction.cluster),
        ("time", _phases(prediction)),
        ("memory", _memory(prediction)),
        ("bound by", prediction.bound_by),
    ]
    price = prediction.price_per_million_samples
    if price is not None:
        facts.append(("price", f"{price:,.2f} per million samples"))
    return facts + [("note", note) for note in prediction.notes]


def rate_text(value: float) -> str:
    """A rate with at least three digits that mean something."""
    decimals = max(1, 2 - math.floor(math.log10(value))) if 0 < value < math.inf else 1
    return f"{value:,.{decimals}f}"


def _tokens(prediction: "Prediction") -> str:
    rate = prediction.tokens_per_second
    return "" if rate is None else f", {rate:,.0f} tokens/s"


def device_rate_text(prediction: "Prediction") -> str:
    """Arithmetic of the model that one device does per second."""
    rate = prediction.training_flops / prediction.step_seconds / prediction.devices
    return f"{rate_text(rate / 1e12)} TFLOP/s"


def utilisation_text(prediction: "Prediction") -> str:
    """The same over what the device could do."""
    utilisation = prediction.utilisation
    if utilisation is None:
        return "MFU unknown"
    spared = " (convolutions are computed with fewer multiplications)" if utilisation > 1 else ""
    return f"MFU {utilisation:.0%}{spared}"


def _links(cluster: "Cluster") -> list[tuple[str, str]]:
    """What joins devices and nodes, as far as any of it is used."""
    words = []
    if cluster.devices_per_node > 1 and cluster.intra is not None:
        words.append(f"{cluster.intra.name} in a node")
    if cluster.nodes > 1 and cluster.inter is not None:
        cards = cluster.nics_per_node
        words.append(f"{cards} card{'s' if cards > 1 else ''} of {cluster.inter.name} per node")
    return [("links", ", ".join(words))] if words else []


def _phases(prediction: "Prediction") -> str:
    parts = prediction.breakdown
    words = [
        f"{phase} {format_seconds(seconds)}"
        for phase, seconds in parts.exposed.items()
        if seconds >= _WORTH_A_WORD * prediction.step_seconds
    ]
    hidden = parts.hidden_communication_seconds
    return ", ".join(words) + (f" ({format_seconds(hidden)} hidden)" if hidden > 0 else "")


def _memory(prediction: "Prediction") -> str:
    memory = prediction.memory
    parts = ", ".join(f"{name} {format_bytes(float(v))}" for name, v in memory.parts().items())
    available = prediction.device_memory_bytes
    total = format_bytes(float(memory.total_bytes))
    if available is None:
        return f"{total} ({parts}); the device's memory is not known"
    tight = "too tight beside what a process takes" if memory.total_bytes <= available else ""
    verdict = "fits" if prediction.fits else tight or "does NOT fit"
    return f"{total} of {format_bytes(available)}, {verdict} ({parts})"


def _traffic(prediction: "Prediction") -> str:
    sent = [task for task, _ in prediction.step.on(NETWORK)]
    size = sum(task.size_bytes for task in sent)
    seconds = sum(task.seconds for task in sent)
    link = prediction.cluster.inter if prediction.cluster.nodes > 1 else prediction.cluster.intra
    over = f" over {link.name}" if link is not None else ""
    return f"{format_bytes(size)}{over} takes {format_seconds(seconds)}"


def _exposed_on(prediction: "Prediction", lane: str) -> float:
    """Time of a lane whose messages are always waited for, on the slowest rank."""
    ranks: dict[int, float] = {}
    for task, _ in prediction.step.on(lane):
        ranks[task.rank] = ranks.get(task.rank, 0.0) + task.seconds
    return max(ranks.values(), default=0.0)
