"""What ``inspect`` is asked to look at: a network of the zoo or a file of the user's."""

from collections.abc import Sequence
from pathlib import PurePath

from paceline.errors import InputError
from paceline.workload import zoo
from paceline.workload.graph import Graph

DEFAULT_BATCH = 32


def load_model(target: str, input_shapes: Sequence[str], sequence: int | None) -> Graph:
    """The graph of a name of the zoo, ``file.py:function``, ``file.onnx`` or ``config.json``."""
    shapes = [parse_shape(text) for text in input_shapes]
    if is_user_model(target):
        from paceline.workload.capture import load_user_model

        return load_user_model(target, shapes)
    graph = zoo.build(target, sequence)
    if not shapes:
        return graph
    images = [name for name, spec in graph.inputs.items() if spec.dtype == "float"]
    if len(shapes) > len(images):
        raise InputError(
            f"{len(shapes)} shapes for {len(images)} inputs of numbers of '{graph.name}'",
            "give token networks --batch and --sequence instead of --input",
        )
    return graph.with_inputs({name: shape[1:] for name, shape in zip(images, shapes, strict=False)})


def is_user_model(target: str) -> bool:
    """Whether the target names a file and not a network of the zoo."""
    path, _, _ = target.rpartition(":") if ".py:" in target else (target, "", "")
    return PurePath(path).suffix in (".py", ".onnx", ".json")


def batch_of(batch: int | None, input_shapes: Sequence[str]) -> int:
    """Samples per step: as asked, else those of the first input, else 32."""
    if batch is not None:
        return batch
    return parse_shape(input_shapes[0])[0] if input_shapes else DEFAULT_BATCH


def parse_shape(text: str) -> tuple[int, ...]:
    """``32x3x224x224`` as numbers, the batch first."""
    try:
        shape = tuple(int(size) for size in text.lower().replace("×", "x").split("x"))
    except ValueError:
        shape = ()
    if not shape or min(shape) < 1:
        raise InputError(f"'{text}' is not a shape", "write it like 32x3x224x224")
    return shape


def notes_on(graph: Graph, target: str) -> list[str]:
    """What a reader must know of a captured graph: what was not understood, what is uncertain."""
    if not is_user_model(target):
        return []
    from paceline.workload.capture import capture_notes

    return list(capture_notes(graph))
