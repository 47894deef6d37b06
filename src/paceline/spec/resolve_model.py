"""Resolution of models: a network of the zoo, a user's file, or a graph."""

from collections.abc import Sequence
from pathlib import Path, PurePath

from paceline.errors import InputError
from paceline.workload import zoo
from paceline.workload.graph import RECORDED_BATCH, Graph
from paceline.workload.workload import Workload

Model = str | Path | Graph | Workload

DEFAULT_BATCH = 32
LARGE_PARAMETERS = 1e9
"""Parameters above which a default batch is one sample."""


def graph_of(
    model: "str | PurePath | Graph", inputs: Sequence[str] = (), seq: int | None = None
) -> Graph:
    """The graph of a name of the zoo, ``file.py:function``, ``file.onnx`` or ``config.json``.

    A name such as ``meta-llama/Llama-3.1-8B`` is looked up in the local cache of the Hugging Face
    hub.

    ``inputs`` are shapes with the batch first, as in "32x3x224x224"; ``seq`` is tokens per
    sample.
    """
    if isinstance(model, Graph):
        return model
    target = str(model)
    if is_user_model(target):
        from paceline.workload.capture import load_user_model

        return load_user_model(target, inputs, seq)
    if "/" in target:
        from paceline.workload.capture.hugging_face import load_config
        from paceline.workload.capture.hugging_face.hub_cache import cached_config

        return load_config(cached_config(target), seq, target)
    graph = zoo.build(target, seq)
    if not inputs:
        return graph
    shapes = [_shape(text) for text in inputs]
    images = [name for name, spec in graph.inputs.items() if spec.dtype == "float"]
    if len(shapes) > len(images):
        raise InputError(
            f"{len(shapes)} --input shapes for {len(images)} float inputs of '{graph.name}'",
            "use --batch and --seq for token inputs",
        )
    return graph.with_inputs({name: shape[1:] for name, shape in zip(images, shapes, strict=False)})


def is_user_model(target: str) -> bool:
    """Whether the target names a file and not a network of the zoo."""
    path, _, _ = target.partition(":") if ".py:" in target else (target, "", "")
    return PurePath(path).suffix in (".py", ".onnx", ".json")


def batch_of(batch: int | None, inputs: Sequence[str], graph: Graph) -> int:
    """Samples per step: as given, else of the first input, else as captured, else 32.

    The default is 1 for networks with more than 1 B parameters.
    """
    if batch is not None:
        return batch
    if inputs:
        return _shape(inputs[0])[0]
    return graph.dimensions.get(RECORDED_BATCH, 1 if is_large(graph) else DEFAULT_BATCH)


def is_large(graph: Graph) -> bool:
    """Whether a network has more than 1 B dense parameters."""
    profile = graph.profile(None, "fp32")
    return profile.parameters > LARGE_PARAMETERS and not profile.has_sparse_gradients


def _shape(text: str) -> tuple[int, ...]:
    from paceline.workload.capture import parse_input

    return parse_input(text).shape
