"""A network as one hybrid block of MXNet, which compiles it; channels first."""

from collections.abc import Mapping
from typing import Any

import mxnet as mx
from layer_graph import NORM_EPSILON, NORM_NEW_SHARE, whole_program
from layer_shapes import value_shapes
from mxnet import gluon
from numpy_data import initial_statistics, initial_weights

Node = Mapping[str, Any]


class Network(gluon.HybridBlock):
    """The loss of a batch as one block: called with the inputs in the graph's order."""

    def __init__(self, job: Mapping[str, Any], context: mx.Context) -> None:
        super().__init__(prefix="")
        graph = job["graph"]
        self.program = whole_program(with_read_shapes(graph, job.get("sequence")))
        self.names = list(graph["inputs"])
        self.short_names: dict[str, str] = {}
        weights = initial_weights(graph, job["seed"])
        for name, value in {**weights, **initial_statistics(graph)}.items():
            attribute = name.replace(".", "_")
            self.short_names[attribute] = name
            trained = "write" if name in weights else "null"
            parameter = self.params.get(
                attribute, shape=value.shape, init=mx.init.Zero(), grad_req=trained
            )
            setattr(self, attribute, parameter)
            parameter.initialize(ctx=context)
            parameter.set_data(mx.nd.array(value, ctx=context))

    def hybrid_forward(self, F: Any, *values: Any, **own: Any) -> Any:  # noqa: N803
        """The mean loss."""
        parameters = {self.short_names[name]: value for name, value in own.items()}
        inputs = dict(zip(self.names, values, strict=True))
        return self.program.run(operations(F), parameters, inputs)


def with_read_shapes(graph: Mapping[str, Any], sequence: "int | None") -> dict[str, Any]:
    """The graph whose nodes know the shapes that they ``read``, which a symbol does not tell."""
    shapes = value_shapes(graph, sequence)
    nodes = [
        {**node, "read": [shapes[name] for name in node["inputs"] if name in shapes]}
        for node in graph["nodes"]
    ]
    return {**graph, "nodes": nodes}


def operations(F: Any) -> dict[str, Any]:  # noqa: N803
    """MXNet's function of each operation, on arrays or symbols: ``F`` is the module of either."""

    def conv(node: Node, inputs: list, own: Mapping[str, Any]) -> Any:
        return F.Convolution(
            inputs[0],
            own["weight"],
            *([own["bias"]] if "bias" in own else []),
            kernel=tuple(node["kernel"]),
            stride=tuple(node["stride"]),
            pad=tuple(node["padding"]),
            dilate=tuple(node["dilation"]),
            num_filter=node["out_channels"],
            num_group=node["groups"],
            no_bias="bias" not in own,
        )

    def linear(node: Node, inputs: list, own: Mapping[str, Any]) -> Any:
        bias = [own["bias"]] if "bias" in own else []
        return F.FullyConnected(
            inputs[0],
            own["weight"],
            *bias,
            num_hidden=node["out_features"],
            no_bias=not bias,
            flatten=False,
        )

    def batch_norm(_: Node, inputs: list, own: Mapping[str, Any]) -> Any:
        names = ("weight", "bias", "running_mean", "running_var")
        return F.BatchNorm(
            inputs[0],
            *(own[name] for name in names),
            eps=NORM_EPSILON,
            momentum=1.0 - NORM_NEW_SHARE,
            fix_gamma=False,
        )

    def activation(node: Node, inputs: list, _: Mapping[str, Any]) -> Any:
        if node["function"] == "relu6":
            return F.clip(inputs[0], 0.0, 6.0)
        return F.Activation(inputs[0], act_type=node["function"])

    def pool(kind: str) -> Any:
        return lambda node, inputs, _: F.Pooling(
            inputs[0],
            pool_type=kind,
            kernel=tuple(node["kernel"]),
            stride=tuple(node["stride"]),
            pad=tuple(node["padding"]),
        )

    def pad_shortcut(node: Node, inputs: list, _: Mapping[str, Any]) -> Any:
        stride = node["stride"]
        taken = F.slice(inputs[0], begin=(0, 0, 0, 0), end=(None,) * 4, step=(1, 1, stride, stride))
        added = node["out_channels"] - node["read"][0][0]
        empty = [
            F.zeros_like(F.slice_axis(taken, axis=1, begin=0, end=size))
            for size in (added // 2, added - added // 2)
        ]
        return F.concat(empty[0], taken, empty[1], dim=1)

    def cross_entropy(_: Node, inputs: list, __: Mapping[str, Any]) -> Any:
        return -F.mean(F.pick(F.log_softmax(inputs[0]), inputs[1]))

    return {
        "activation": activation,
        "add": lambda _, inputs, __: F.add_n(*inputs),
        "avg_pool": pool("avg"),
        "batch_norm": batch_norm,
        "concat": lambda _, inputs, __: F.concat(*inputs, dim=1),
        "conv": conv,
        "cross_entropy": cross_entropy,
        "dropout": lambda node, inputs, _: F.Dropout(inputs[0], p=node["probability"]),
        "flatten": lambda _, inputs, __: F.flatten(inputs[0]),
        "global_avg_pool": lambda _, inputs, __: F.mean(inputs[0], axis=(2, 3)),
        "linear": linear,
        "max_pool": pool("max"),
        "pad_shortcut": pad_shortcut,
    }
