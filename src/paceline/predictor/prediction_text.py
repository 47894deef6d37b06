"""A prediction as text for the terminal and a notebook, and its bottleneck in one line."""

import math
from html import escape
from typing import TYPE_CHECKING

from paceline.constants import number
from paceline.predictor.memory.fit_probability import fits_probability
from paceline.predictor.partition.rank_layout import layout_of
from paceline.predictor.partition.tensor_parallel import is_transformer
from paceline.predictor.schedule.fsdp_step import COPIES_SUM
from paceline.predictor.schedule.task_schedule import HSDP_REPLICATE_LINK, NETWORK, REPLICA_LINK
from paceline.render.terminal import prose
from paceline.step import Phase
from paceline.units import format_bytes, format_seconds
from paceline.workload.adapters import adapter_rank

if TYPE_CHECKING:
    from paceline.hardware import Cluster
    from paceline.predictor.prediction import Prediction

_NEAR_IDEAL = 0.9
_LEAST_SHARE = 1e-4
RECOMPUTATION = "recomputation"
"""The loss that is arithmetic, so it is as certain as the network's own arithmetic."""


def bound_by(prediction: "Prediction") -> str:
    """The largest loss against the ideal; "arithmetic" if nothing is lost."""
    losses = losses_seconds(prediction)
    name, seconds = max(losses.items(), key=lambda item: item[1], default=("", 0.0))
    if prediction.efficiency >= _NEAR_IDEAL or seconds <= 0:
        return "arithmetic"
    if name == "network":
        return f"network: {_traffic(prediction)}"
    return name


def losses_seconds(prediction: "Prediction") -> dict[str, float]:
    """Seconds per step of the slowest rank beyond its share of the arithmetic, by cause."""
    exposed = prediction.breakdown.exposed
    within = _exposed_on(prediction, REPLICA_LINK)
    communication = exposed.get(Phase.COMMUNICATE, 0.0)
    computing = prediction.compute_seconds
    idle = exposed.get(Phase.WAIT, 0.0)
    feeding = exposed.get(Phase.INPUT, 0.0) + exposed.get(Phase.COPY, 0.0)
    own = prediction.ideal_seconds - prediction.ideal_input_seconds
    known = own + prediction.sharing_seconds + prediction.waiting_seconds
    unequal = min(prediction.step_losses.division, max(0.0, computing - known))
    left = max(0.0, computing - known - unequal)
    again = min(prediction.step_losses.recomputing, left)
    pipelined = prediction.plan.pp > 1
    return {
        "network": max(0.0, communication - within),
        "links within a replica": within,
        "pipeline bubble" if pipelined else "idle": idle,
        "input": max(0.0, feeding - prediction.ideal_input_seconds),
        "memory and cache contention": prediction.sharing_seconds,
        "waiting for the slowest": prediction.waiting_seconds,
        **({_unequal_work(prediction): unequal} if prediction.step_losses.division else {}),
        **({RECOMPUTATION: again} if again else {}),
        "memory traffic, overheads": left - again,
    }


def _unequal_work(prediction: "Prediction") -> str:
    experts = ["unequal experts"] if prediction.plan.ep > 1 else []
    return ", ".join([*experts, *["attention in parts"] * (prediction.plan.cp > 1)])


def as_text(prediction: "Prediction") -> str:
    """Lines for a terminal: a warning if the plan does not fit, the job, the chosen plan, facts."""
    lines = [*no_room_lines(prediction), *prose(headline(prediction), "  ")]
    lines += [line for text in _chosen_lines(prediction) for line in prose(text, "  ")]
    for name, text in _facts(prediction):
        lines += prose(f"  {name:<11} {text}", " " * 14)
    return "\n".join(lines)


def as_html(prediction: "Prediction") -> str:
    """A small table for a notebook."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:left'>{escape(text)}</td></tr>"
        for name, text in _facts(prediction)
    )
    no_room = "".join(
        f"<strong style='color:#b00020'>{line}</strong><br>" for line in no_room_lines(prediction)
    )
    return f"<table><caption>{no_room}{escape(headline(prediction))}</caption>{rows}</table>"


def no_room_lines(prediction: "Prediction") -> list[str]:
    """A warning if the plan does not fit in memory; empty otherwise or if unknown."""
    available = prediction.device_memory_bytes
    if prediction.fits is not False or available is None:
        return []
    needed = float(prediction.memory.total_bytes)
    tight = ", too little for the process and its libraries" if needed <= available else ""
    has = f" and has {format_bytes(available)}"
    if needed > available and format_bytes(needed) == format_bytes(available):
        has = f", {format_bytes(needed - available)} more than it has"
    return [f"does NOT fit: a device needs {format_bytes(needed)}{has}{tight}"]


_PROGRAMS = {"torch-ddp": "DDP", "torch-fsdp": "FSDP", "megatron-lm": "Megatron-LM"}
CHOSEN = "chosen: "
"""Start of the note that lists defaults."""


def plan_text(prediction: "Prediction") -> str:
    """The plan in the terms of its program: ``FSDP dp 16, mb 1``, ``HSDP 8 x 2, mb 1``."""
    plan, name = prediction.plan, prediction.framework
    title = _PROGRAMS.get(name, name)
    label = plan.label
    if title == "FSDP" and plan.shard_copies > 1:
        title = "HSDP"
        label = label.replace(f"dp {plan.dp}", f"{plan.shard_degree} x {plan.shard_copies}", 1)
        label = label.replace(f" x shard {plan.shard_degree}", "")
    size, count = plan.batches(prediction.workload.batch)
    parts = [f"{title} {label}"]
    parts += [f"ZeRO-{plan.zero}"] if plan.zero and title not in ("FSDP", "HSDP") else []
    parts += [f"mb {size}"] if count > 1 else [f"batch {size}"]
    parts += ["" if plan.format_recompute == "none" else f"recompute {plan.format_recompute}"]
    return ", ".join(part for part in parts if part)


def _remedy(prediction: "Prediction") -> list[tuple[str, str]]:
    """The smallest change with which the job fits; empty if it fits or if that is unknown."""
    if prediction.fits is not False:
        return []
    change = prediction.nearest_fit
    if change is None:
        text = "no single option or pair of options ('paceline advise' searches all plans"
        graph = prediction.workload.graph
        tunable = is_transformer(graph) and adapter_rank(graph) is None
        text += "; --qlora fine-tunes adapters on 4-bit weights)" if tunable else ")"
    else:
        text = f"{change.options} ({format_bytes(change.memory_bytes)})"
    return [("fits with", text)]


def headline(prediction: "Prediction") -> str:
    """Model, batch, cluster, plan and framework of a prediction."""
    workload, cluster, plan = prediction.workload, prediction.cluster, prediction.plan
    sequence = f" x {workload.sequence} tokens" if workload.sequence is not None else ""
    size, count = plan.batches(workload.batch)
    parts = f" in {count} micro-batches of {size}" if count > 1 else ""
    name = workload.graph.name
    name = name if workload.frozen_bytes is None else f"{name} (4-bit weights)"
    return (
        f"{name}, batch {workload.batch}{sequence}{parts}, {workload.precision} on "
        f"{cluster.name} {cluster.nodes}x{cluster.devices_per_node}, {plan.label}, "
        f"{prediction.framework}"
    )


def _chosen_lines(prediction: "Prediction") -> list[str]:
    """The plan and other defaults that the user did not state, and the options that set them."""
    notes = [note.removeprefix(CHOSEN) for note in prediction.notes if note.startswith(CHOSEN)]
    lines = []
    for note in notes:
        chosen, _, override = note.partition("; override")
        lines += [f"Plan (chosen): {chosen}.", f"  Override{override}."]
    return lines


def _facts(prediction: "Prediction") -> list[tuple[str, str]]:
    low, high = prediction.step_interval_seconds
    slow, fast = map(rate_text, prediction.samples_per_second_interval)
    interval = f"[{format_seconds(low)}, {format_seconds(high)}]"
    facts = [
        *_remedy(prediction),
        ("memory", _memory(prediction)),
        (
            "throughput",
            f"{rate_text(prediction.samples_per_second)} samples/s [{slow}, {fast}]"
            f"{_tokens(prediction)}, efficiency {prediction.efficiency:.0%}",
        ),
        ("step", f"{format_seconds(prediction.step_seconds)} {interval} (90 % interval)"),
        ("per device", f"{device_rate_text(prediction)}, {utilisation_text(prediction)}"),
        *_links(prediction.cluster),
        ("time", _phases(prediction)),
        ("bound by", prediction.bound_by),
    ]
    price = prediction.price_per_million_samples
    if price is not None and prediction.fits is not False:
        facts.append(("price", f"{price:,.2f} per million samples"))
    notes = [note for note in prediction.notes if not note.startswith(CHOSEN)]
    return facts + [("note", note) for note in notes]


def rate_text(value: float) -> str:
    """A rate with three significant digits: ``17,900``, ``8.83``."""
    if not 0 < value < math.inf:
        return f"{value:,.1f}"
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.{max(0, 2 - math.floor(math.log10(rounded)))}f}"


def _tokens(prediction: "Prediction") -> str:
    rate = prediction.tokens_per_second
    return "" if rate is None else f", {rate_text(rate)} tokens/s"


def device_rate_text(prediction: "Prediction") -> str:
    """Model FLOP/s per device."""
    rate = prediction.training_flops / prediction.step_seconds / prediction.devices
    return f"{rate_text(rate / 1e12)} TFLOP/s"


def utilisation_text(prediction: "Prediction") -> str:
    """Model FLOP utilisation."""
    utilisation = prediction.utilisation
    if utilisation is None:
        return "MFU unknown"
    share = prediction.executed_share
    executed = f" (Winograd convolutions: {share:.0%} of the FLOPs are executed)"
    return f"MFU {utilisation:.0%}{executed if share < 1 else ''}"


def _links(cluster: "Cluster") -> list[tuple[str, str]]:
    """The links in use between devices and between nodes."""
    links = []
    if cluster.devices_per_node > 1 and cluster.intra is not None:
        domain = cluster.on_machines()
        links.append(f"{cluster.intra.name} {'among ' + domain if domain else 'in a node'}")
    if cluster.nodes > 1 and cluster.inter is not None:
        nics = cluster.nics_per_node
        links.append(f"{nics} NIC{'s' if nics > 1 else ''} of {cluster.inter.name} per node")
    return [("links", ", ".join(links))] if links else []


def _phases(prediction: "Prediction") -> str:
    parts = prediction.breakdown
    phases = [
        f"{phase} {format_seconds(seconds)}"
        for phase, seconds in parts.exposed.items()
        if seconds >= _LEAST_SHARE * prediction.step_seconds
    ]
    hidden = parts.hidden_communication_seconds
    return ", ".join(phases) + (f" ({format_seconds(hidden)} hidden)" if hidden > 0 else "")


def _memory(prediction: "Prediction") -> str:
    memory = prediction.memory
    parts = ", ".join(f"{name} {format_bytes(float(v))}" for name, v in memory.parts().items())
    available = prediction.device_memory_bytes
    total = format_bytes(float(memory.total_bytes))
    if available is None:
        return f"{total} ({parts}); device memory unknown"
    verdict = "fits" if prediction.fits else "does NOT fit"
    likely = fits_probability(prediction)
    chance = "" if likely is None else f", {min(max(likely, 0.01), 0.99):.0%} likely"
    chance = chance if prediction.fits else ""
    reserved = format_bytes(available * number("spread.memory.reserved_share"))
    return (
        f"{total} of {format_bytes(available)}, {verdict}{chance} ({parts}{_stages(prediction)}; "
        f"{reserved} are left for CUDA context and NCCL buffers)"
    )


def _stages(prediction: "Prediction") -> str:
    """Memory of pipeline stages, the fullest one named."""
    sizes = [float(stage.total_bytes) for stage in prediction.stage_memories]
    if len(sizes) == 1:
        return ""
    fullest = max(range(len(sizes)), key=sizes.__getitem__)
    return f"; on stage {fullest + 1} of {len(sizes)}, {format_bytes(min(sizes))} on the emptiest"


def _traffic(prediction: "Prediction") -> str:
    """Bytes and seconds of the messages among replicas, by link."""
    sums: dict[str, list[float]] = {}
    for task, _ in (*prediction.step.on(NETWORK), *prediction.step.on(HSDP_REPLICATE_LINK)):
        own = sums.setdefault(_links_taken(prediction, task.name), [0.0, 0.0])
        own[0] += task.size_bytes
        own[1] += task.seconds
    return ", ".join(
        f"{format_bytes(size)} over {links} takes {format_seconds(seconds)}"
        for links, (size, seconds) in sums.items()
    )


def _links_taken(prediction: "Prediction", message: str) -> str:
    """Names of the links that a message uses.

    Shard groups inside a node exchange weights there; only sums among copies leave it. Below
    stage 3 a reduce-scatter includes these sums.
    """
    cluster, plan = prediction.cluster, prediction.plan
    layout = layout_of(plan, cluster.devices_per_node)
    groups = [layout.shard_copies if message.startswith(COPIES_SUM) else layout.shard_group]
    if plan.zero < 3 and message.startswith("reduce-scatter"):
        groups.append(layout.shard_copies)
    links = [cluster.inter if own.nodes > 1 else cluster.intra for own in groups if own.ranks > 1]
    return " and ".join(dict.fromkeys(link.name for link in links if link is not None))


def _exposed_on(prediction: "Prediction", lane: str) -> float:
    """Time of a lane whose messages are always exposed, on the slowest rank."""
    ranks: dict[int, float] = {}
    for task, _ in prediction.step.on(lane):
        ranks[task.rank] = ranks.get(task.rank, 0.0) + task.seconds
    return max(ranks.values(), default=0.0)
