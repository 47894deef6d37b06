"""Emulated devices in PyTorch: ranks sleep for the times of layers instead of computing.

Parameters, gradients and messages are real and have the sizes of the network; a layer only sleeps
for the time that the job gives for it.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import torch
import torch.distributed as dist
from channel import Events
from device_clock import DeviceClock, run_ahead_of_others
from layer_graph import Node, parameter_owners
from torch import Tensor, nn


class Emulation:
    """Replaces network, loss, optimiser and data on a rank of an emulated device.

    ``job["emulated"]`` has ``layers`` (seconds of forward and backward by node),
    ``update_seconds``, optionally ``exchanges`` (operations and bytes that devices of one replica
    exchange after the forward and backward of a node), and names for the record. With
    ``whole_gradients`` the step creates gradient tensors for the framework to read; otherwise the
    framework uses existing ones.
    """

    def __init__(self, job: dict, whole_gradients: bool) -> None:
        self.scheduler = run_ahead_of_others()
        self.job, self.whole_gradients = job, whole_gradients
        self.clock = DeviceClock(host_waits=whole_gradients)
        self.sent: list[dist.Work] = []

    def network(self) -> "EmulatedNetwork":
        return EmulatedNetwork(self.job, self.clock, self.whole_gradients)

    def optimiser(self, parameters: Iterable[nn.Parameter]) -> "EmulatedUpdate":
        """An optimiser that sleeps for the update and changes nothing."""
        return EmulatedUpdate(parameters, self)

    @property
    def update_seconds(self) -> float:
        return float(self.job["emulated"]["update_seconds"])

    def wait_for_messages(self) -> None:
        for message in self.sent:
            message.wait()
        self.sent.clear()

    def report(self, rank: int, events: Events) -> None:
        """Write the lateness of the host at the end of each step."""
        late = self.clock.late_seconds[self.job["warmup_steps"] :]
        events.write("emulated", rank=rank, scheduler=self.scheduler, late_seconds=late)


class EmulatedUpdate(torch.optim.Optimizer):
    """Replaces the optimiser; the clock of a step starts and ends with it.

    Horovod creates its own optimiser from the parameter groups of another one, so the data of an
    update is stored in these.
    """

    def __init__(self, parameters: Any, emulation: "Emulation | None" = None) -> None:
        super().__init__(parameters, {"emulation": emulation})
        self.emulation: Emulation = self.param_groups[0]["emulation"]

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Start the step; gradients are kept."""
        self.emulation.clock.begin()

    def step(self, closure: Any = None) -> None:
        """Sleep for the update after all messages have arrived, and end the step."""
        self.emulation.wait_for_messages()
        self.emulation.clock.finish(self.emulation.update_seconds)


class ScatterAhead:
    """Reduce-scatter of FSDP that only the update waits for."""

    def __init__(self, emulation: Emulation) -> None:
        self.emulation = emulation

    def allocate(self, size: Any, *, dtype: torch.dtype, device: torch.device) -> Tensor:
        return torch.zeros(*size, dtype=dtype, device=device)

    def __call__(
        self,
        output_tensor: Tensor,
        input_tensor: Tensor,
        group: Any,
        op: Any,
        async_op: bool = False,
    ) -> None:
        """Send after the device has computed the data."""
        self.emulation.clock.catch_up()
        work = dist.reduce_scatter_tensor(output_tensor, input_tensor, op, group, async_op=True)
        self.emulation.sent.append(work)


class EmulatedNetwork(nn.Module):
    """The nodes of a graph in order, each with its parameters and the time it takes."""

    input_names: tuple[str, ...] = ()
    target_names: tuple[str, ...] = ()

    def __init__(self, job: dict, clock: DeviceClock, whole_gradients: bool) -> None:
        super().__init__()
        graph, times = job["graph"], job["emulated"]["layers"]
        exchanges = job["emulated"].get("exchanges") or {}
        owners = parameter_owners(graph)
        made: dict[str, EmulatedLayer] = {}
        self.order = nn.ModuleList()
        for node in graph["nodes"]:
            name = node["name"]
            layer = EmulatedLayer(node, times.get(name, (0.0, 0.0)), clock, whole_gradients)
            layer.exchanges = tuple(map(_exchanges, exchanges.get(name, ((), ()))))
            for short, owner in owners[name].items():
                layer.adopt(short, made.get(owner))
            made[name] = layer
            self.order.append(layer)
        self.start = nn.Parameter(torch.zeros(1), requires_grad=False)

    def node_modules(self) -> "Iterator[tuple[str, nn.Module]]":
        """Nodes by name with their modules, in the order they run."""
        return ((layer.node["name"], layer) for layer in self.order)

    def forward(self) -> Tensor:
        """The time of every layer; one number, which the last layer hands back."""
        value = self.start.detach().clone().requires_grad_()
        for layer in self.order:
            value = layer(value)
        return value.sum()


class EmulatedLayer(nn.Module):
    """One node: its own parameters (shapes from the job), its times, the device it runs on."""

    def __init__(
        self, node: Node, times: tuple[float, float], clock: DeviceClock, whole_gradients: bool
    ) -> None:
        super().__init__()
        self.node, self.times, self.clock = node, times, clock
        self.whole_gradients = whole_gradients
        self.exchanges: tuple[tuple[Exchange, ...], ...] = ((), ())
        self.buffer_shapes = node["parameter_shapes"] if node["op"] == "batch_norm" else {}
        for number, shape in enumerate(self.buffer_shapes.values()):
            self.register_buffer(f"running_{number}", torch.zeros(*shape))

    def adopt(self, short: str, owner: "EmulatedLayer | None") -> None:
        """Use a parameter of another layer, or create one."""
        if owner is not None and owner is not self:
            self.register_parameter(short, getattr(owner, short))
            return
        shape = self.node["parameter_shapes"][short]
        trained = not self.node.get("frozen")
        self.register_parameter(short, nn.Parameter(torch.zeros(*shape), requires_grad=trained))

    def work(self, direction: int) -> None:
        """Sleep for forward (0) or backward (1), then run its exchanges."""
        self.clock.work(self.times[direction])
        if self.exchanges[direction]:
            self.clock.catch_up()
            for exchange in self.exchanges[direction]:
                exchange.run()
            self.clock.waited()

    def forward(self, value: Tensor) -> Tensor:
        """Return the input after the layer's time; backward sleeps for its own."""
        return Slept.apply(value, self, *self.parameters(recurse=False))


class Exchange:
    """A message among the devices of one replica that the next layer waits for.

    ``gather_features`` concatenates the parts of all devices, ``scatter_features`` sums over
    devices and keeps one part each; ``size`` is in bytes of the whole.
    """

    def __init__(self, operation: str, size: float) -> None:
        world = dist.get_world_size()
        part = max(1, round(size / 4 / world))
        self.gathers = operation == "gather_features"
        self.part, self.whole = torch.zeros(part), torch.zeros(part * world)

    def run(self) -> None:
        if self.gathers:
            dist.all_gather_into_tensor(self.whole, self.part)
        else:
            dist.reduce_scatter_tensor(self.part, self.whole)


def _exchanges(pairs: Any) -> "tuple[Exchange, ...]":
    return tuple(Exchange(operation, size) for operation, size in pairs)


class Slept(torch.autograd.Function):
    """Identity that returns after the emulated device has finished a layer, in both passes."""

    @staticmethod
    def forward(context: Any, value: Tensor, layer: EmulatedLayer, *parameters: Tensor) -> Tensor:
        context.layer = layer
        context.shapes = [(p.shape, p.requires_grad) for p in parameters]
        layer.work(0)
        return value.clone()

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Any:
        """Sleep for the layer's backward; its gradients are then complete."""
        layer = context.layer
        layer.work(1)
        whole = [
            torch.zeros(shape) if trained and layer.whole_gradients else None
            for shape, trained in context.shapes
        ]
        return (gradient, None, *whole)
