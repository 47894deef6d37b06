"""Tasks of one device common to all policies: input, layers, messages, update."""

from collections.abc import Sequence

from paceline.predictor.comm.buckets import Message
from paceline.predictor.schedule.step_costs import (
    CollectiveSeconds,
    LayerTime,
    Seconds,
    StepCosts,
    takes_time,
)
from paceline.predictor.schedule.task_schedule import (
    NETWORK,
    REPLICA_LINK,
    ScheduleBackend,
    WholePass,
)
from paceline.step import Phase


class DeviceTasks:
    """Schedules the tasks of one device; return values are handles to wait for.

    Exchanges within a replica have a separate link unless ``exchange_lane`` is that of the
    gradients.
    """

    def __init__(
        self,
        builder: ScheduleBackend,
        layers: Sequence[LayerTime],
        costs: StepCosts,
        message_overhead_seconds: float,
        exchange_lane: str = REPLICA_LINK,
    ) -> None:
        self.layers = layers
        self.costs = costs
        self.message_overhead_seconds = message_overhead_seconds
        self.exchange_lane = exchange_lane
        self.builder = builder

    def input(self, after: tuple[int, ...] = ()) -> tuple[int, ...]:
        """Input and copy; returns what forward waits for (nothing with prefetching)."""
        last = after
        for name, phase, seconds in (
            ("input", Phase.INPUT, self.costs.input_seconds),
            ("copy", Phase.COPY, self.costs.copy_seconds),
        ):
            if takes_time(seconds):
                last = (self.builder.run_async(name, phase, seconds, last),)
        return () if self.costs.input_overlapped else last

    def framework(self, after: tuple[int, ...]) -> None:
        """Framework overhead per step."""
        if takes_time(self.costs.overhead_seconds):
            self.builder.compute("framework", Phase.OTHER, self.costs.overhead_seconds, after)

    def earlier_micro_batches(self, count: Seconds, scatter_seconds: Seconds = 0.0) -> None:
        """All micro-batches but the last; their reduce-scatters overlap computing."""
        if takes_time(count):
            layers = self.layers
            forward = WholePass(
                sum(x.forward_seconds for x in layers),
                sum(x.forward_exchange_seconds for x in layers),
            )
            backward = WholePass(
                sum(x.recompute_seconds + x.backward_seconds for x in layers),
                sum(x.backward_exchange_seconds for x in layers),
            )
            self.builder.earlier_micro_batches(count, forward, backward, scatter_seconds)

    def forward(self, index: int, after: tuple[int, ...] = ()) -> int:
        """Forward of one layer and its exchange within the replica."""
        layer = self.layers[index]
        done = self.builder.compute(
            f"forward {layer.name}", Phase.FORWARD, layer.forward_seconds, after, layer.name
        )
        return self._exchange(layer.forward_exchange_seconds, layer.name, done)

    def backward(self, index: int, launches: int = 0, after: tuple[int, ...] = ()) -> int:
        """Recomputation and backward of one layer, and the launch of its messages."""
        layer = self.layers[index]
        if takes_time(layer.recompute_seconds):
            self.builder.compute(
                f"again {layer.name}", Phase.FORWARD, layer.recompute_seconds, after, layer.name
            )
        done = self.builder.compute(
            f"backward {layer.name}", Phase.BACKWARD, layer.backward_seconds, after, layer.name
        )
        done = self._exchange(layer.backward_exchange_seconds, layer.name, done)
        overhead = launches * self.message_overhead_seconds
        if overhead > 0:
            done = self.builder.compute(
                f"launch {layer.name}", Phase.OTHER, overhead, (), layer.name
            )
        return done

    def send(
        self,
        name: str,
        group: Message,
        seconds: CollectiveSeconds,
        after: tuple[int, ...] = (),
        lane: str = NETWORK,
    ) -> int:
        """One message with the gradients or weights of a group of layers."""
        first, last = self.layers[group.layers[0]].name, self.layers[group.layers[-1]].name
        span = first if first == last else f"{first}..{last}"
        time = seconds(group.size_bytes)
        return self.builder.send(f"{name} {span}", time, group.size_bytes, after, span, lane)

    def update(self, after: tuple[int, ...]) -> tuple[int, ...]:
        """The optimizer's update of all layers; returns what later tasks wait for."""
        seconds = self.costs.update_seconds
        if not takes_time(seconds):
            return after
        return (self.builder.compute("update", Phase.UPDATE, seconds, after),)

    def update_layer(self, index: int, after: tuple[int, ...]) -> None:
        """The optimizer's update of one layer: its share of the whole."""
        size = self.layers[index].gradient_bytes
        if size > 0 and takes_time(self.costs.update_seconds):
            share = self.costs.update_seconds * size / self.gradient_bytes
            name = self.layers[index].name
            self.builder.compute(f"update {name}", Phase.UPDATE, share, after, name)

    @property
    def gradient_bytes(self) -> float:
        """Bytes of all gradients."""
        return sum(layer.gradient_bytes for layer in self.layers)

    def _exchange(self, seconds: Seconds, layer: str, after: int) -> int:
        """Messages within the replica, which later computing waits for."""
        if not takes_time(seconds):
            return after
        return self.builder.exchange(seconds, layer, after, self.exchange_lane)
