"""The step of a network whose segments are spread in given ways, as scheduled tasks."""

from collections.abc import Sequence

from paceline.plan.messages import Message
from paceline.predictor.device_tasks import DeviceTasks
from paceline.predictor.per_layer.costs import PerLayerCosts
from paceline.predictor.per_layer.segments import Way
from paceline.predictor.step_builder import NETWORK, StepBuilder
from paceline.predictor.step_costs import GradientExchange
from paceline.step import Step


def per_layer_step(costs: PerLayerCosts, ways: Sequence[Way]) -> Step:
    """The step of one device; gradients and exchanges of activations share one link."""
    layers, exchange = costs.layers(ways), costs.data.exchange
    assert exchange is not None, "several devices exchange gradients"
    step_costs = costs.step_costs(ways)
    overhead = step_costs.message_overhead_seconds * exchange.share
    builder = StepBuilder(step_costs.interference)
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
