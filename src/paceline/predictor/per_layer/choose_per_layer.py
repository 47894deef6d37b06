"""Data or model parallelism for each segment, by dynamic programming.

Backward runs from the last segment to the first with two clocks, of device and link, because
gradient messages overlap the computing of earlier segments. Both clocks are monotonic in the
clocks before them, so a choice that is later on both clocks than another one can be dropped
(Pareto front), and the result is exact.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from paceline.hardware import Cluster
from paceline.predictor.comm.buckets import Message
from paceline.predictor.kernels.efficiency import Efficiency
from paceline.predictor.per_layer.segment_costs import PerLayerCosts
from paceline.predictor.per_layer.segments import Segment, Way
from paceline.predictor.plan.plan import Plan
from paceline.predictor.schedule.device_tasks import DeviceTasks
from paceline.predictor.schedule.step_costs import GradientExchange, LayerTime
from paceline.predictor.schedule.task_schedule import NETWORK, TaskSchedule, interfered_seconds
from paceline.step import Step
from paceline.workload.workload import Workload


def per_layer_step(costs: PerLayerCosts, ways: Sequence[Way]) -> Step:
    """The step of one device; gradients and activations share one link."""
    layers, exchange = costs.layers(ways), costs.data.gradients
    assert exchange is not None, "several devices exchange gradients"
    step_costs = costs.step_costs(ways)
    overhead = step_costs.message_overhead_seconds * exchange.share
    builder = TaskSchedule(step_costs.interference)
    device = DeviceTasks(builder, layers, step_costs, overhead, NETWORK)
    batch = device.input()
    device.framework(batch)
    for index in range(len(layers)):
        device.forward(index, batch)
    done, sent = -1, []
    late: list[Message] = []
    for index in reversed(range(len(layers))):
        size = layers[index].gradient_bytes
        done = device.backward(index, launches=1 if size > 0 else 0)
        if size > 0:
            late.append(Message((index,), size))
        if not costs.sends_after_backward:
            sent += _sent(device, late, exchange, done)
            late = []
    sent += _sent(device, late, exchange, done)
    device.update(tuple(sent))
    return builder.build(" ".join(ways))


def _sent(
    device: DeviceTasks, messages: Sequence[Message], exchange: GradientExchange, ready: int
) -> list[int]:
    return [device.send("all-reduce", own, exchange.message, (ready,)) for own in messages]


@dataclass(frozen=True)
class PerLayerPlan:
    """Data or model parallelism for each segment of a network, and the resulting step."""

    costs: PerLayerCosts
    ways: tuple[Way, ...]

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments of the network."""
        return self.costs.segments

    @cached_property
    def step(self) -> Step:
        """One device's step, scheduled."""
        return per_layer_step(self.costs, self.ways)

    @property
    def samples(self) -> int:
        """Samples per step of all devices."""
        return self.costs.workload.global_batch(self.costs.cluster.devices)

    def all_in(self, way: Way) -> "PerLayerPlan":
        """The same network with every segment parallelised in one way."""
        return PerLayerPlan(self.costs, (way,) * len(self.ways))


def choose_per_layer(
    workload: Workload,
    cluster: Cluster,
    plan: Plan | None = None,
    *,
    efficiency: Efficiency | None = None,
    input_seconds: float = 0.0,
    jitter: float | None = None,
) -> PerLayerPlan:
    """The fastest choice per segment on all devices of ``cluster``.

    ``workload`` has the batch of one data-parallel worker; ``plan`` gives framework and
    synchronisation, its degrees are not used. The other arguments are those of
    `paceline.predictor.predict`.
    """
    costs = PerLayerCosts(workload, cluster, plan or Plan(), efficiency, input_seconds, jitter)
    return PerLayerPlan(costs, best_ways(costs))


def best_ways(costs: PerLayerCosts) -> tuple[Way, ...]:
    """The fastest choice for each segment."""
    moves = _Moves(costs)
    reached: dict[Way, list[_Reached]] = {way: [_Reached(0.0, 0.0, ())] for way in Way}
    for number in reversed(range(len(costs.segments))):
        behind: dict[Way, list[_Reached]] = {way: [] for way in Way}
        for way, candidates in reached.items():
            for before in Way:
                behind[before] += [moves.past(number, way, before, own) for own in candidates]
        reached = {before: _undominated(found) for before, found in behind.items()}
    # Nothing lies before the first segment: what it would have been spread like is immaterial.
    return min(reached[Way.DATA], key=moves.step_seconds).ways


class _Reached(NamedTuple):
    """Clocks of device and link in seconds after backward of the segments with ``ways``.

    Work that nothing overlaps (forward, updates) is on both clocks.
    """

    device: float
    link: float
    ways: tuple[Way, ...]


class _Moves:
    """Advances the clocks by a segment."""

    def __init__(self, costs: PerLayerCosts) -> None:
        self._costs = costs
        self._exchange = costs.data.gradients
        self._always = costs.data.costs
        self._rest = costs.step_costs((Way.MODEL,) * len(costs.segments))

    def past(self, number: int, way: Way, before: Way, clocks: _Reached) -> _Reached:
        """Clocks after backward of segment ``number``, with ``before`` for the previous segment."""
        earlier = before if number > 0 else None
        layers = self._costs.segment_layers(number, way, earlier)
        device, link = clocks.device, clocks.link
        for layer in reversed(layers):
            device = self._computed(device, link, layer.backward_seconds)
            if layer.backward_exchange_seconds > 0:
                device = link = max(device, link) + layer.backward_exchange_seconds
            if layer.gradient_bytes > 0:
                device = self._computed(device, link, self._launch_seconds)
                if not self._costs.sends_after_backward:
                    link = max(device, link) + self._message_seconds(layer)
        alone = self._alone_seconds(number, way, layers)
        return _Reached(device + alone, link + alone, (way, *clocks.ways))

    def step_seconds(self, end: _Reached) -> float:
        """The whole step, with the update and the input."""
        seconds = max(end.device, end.link) + self._rest.update_seconds
        seconds += self._rest.overhead_seconds
        copied = self._costs.case(end.ways[0]).costs.copy_seconds
        supply = self._always.input_seconds + copied
        return float(max(seconds, supply) if self._always.input_overlapped else seconds + supply)

    def _alone_seconds(self, number: int, way: Way, layers: list[LayerTime]) -> float:
        """Seconds of a segment besides backward and overlapped messages."""
        costs, own = self._costs, self._costs.segments[number]
        seconds = float(sum(layer.whole_forward_seconds for layer in layers))
        if way is Way.MODEL:
            return seconds
        more = costs.parameters(own, Way.DATA) - costs.parameters(own, Way.MODEL)
        seconds += more * costs.update_seconds_per_parameter
        seconds += costs.tensors(own) * costs.data.step.job.framework.tensor_overhead_seconds
        if costs.sends_after_backward:
            seconds += sum(self._message_seconds(own) for own in layers if own.gradient_bytes > 0)
        return seconds

    def _computed(self, device: float, link: float, seconds: float) -> float:
        return device + interfered_seconds(seconds, link - device, self._always.interference)

    def _message_seconds(self, layer: LayerTime) -> float:
        assert self._exchange is not None
        return float(self._exchange.message(layer.gradient_bytes))

    @property
    def _launch_seconds(self) -> float:
        assert self._exchange is not None
        return self._always.message_overhead_seconds * self._exchange.share


def _undominated(candidates: Iterable[_Reached]) -> list[_Reached]:
    """The Pareto front of both clocks, by increasing device clock."""
    kept: list[_Reached] = []
    for own in sorted(candidates):
        if not kept or own.link < kept[-1].link:
            kept.append(own)
    return kept
