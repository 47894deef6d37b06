"""The step of a network with data or model parallelism per segment, as tasks."""

from collections.abc import Sequence

from paceline.predictor.comm.buckets import Message
from paceline.predictor.per_layer.segment_costs import PerLayerCosts
from paceline.predictor.per_layer.segments import Way
from paceline.predictor.schedule.device_tasks import DeviceTasks
from paceline.predictor.schedule.step_costs import GradientExchange
from paceline.predictor.schedule.task_schedule import NETWORK, TaskSchedule
from paceline.step import Step


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
