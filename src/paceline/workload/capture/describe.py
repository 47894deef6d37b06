"""Convert recordings of a training step to a layer graph with costs.

Two recordings, at a batch and at twice that batch, separate costs per sample from costs per step.
If a model runs at one batch size only, all costs but those of weights are assumed to be
proportional to the batch.
"""

from collections import Counter
from collections.abc import Container, Sequence
from typing import Literal

from paceline.errors import InputError
from paceline.workload.capture.gemms import CapturedGemm
from paceline.workload.capture.recording import CapturedSegment, Moved, RecordedInput, RecordedStep
from paceline.workload.capture.traffic import kind_of
from paceline.workload.cost import Affine, Gemm, Number
from paceline.workload.graph import RECORDED_BATCH, Graph, InputSpec, Node
from paceline.workload.ops import Kept, Recorded, RecordedTensor, Traffic, UnknownOperation, Work

ONE_BATCH_NOTE = "runs at one batch size only; costs at others are assumed proportional"
SQUARE_NOTE = "grows faster than the batch; costs at other batches are assumed proportional"

Axis = Literal["m", "n", "k", "count", "nothing"]
_AXES: tuple[Axis, ...] = ("m", "n", "k", "count")


def described(
    name: str, first: RecordedStep, second: RecordedStep | None, notes: Sequence[str] = ()
) -> Graph:
    """Build the graph of a model recorded at one batch and, if it runs there, at another.

    ``notes`` describe the recording.
    """
    if second is not None and not same_operations(first, second):
        second = None
    pairs = [
        _Pair(segment, first.batch, other.segments[index], other.batch)
        for other in [second or first]
        for index, segment in enumerate(first.segments)
    ]
    total_bytes = max(1, first.total_bytes)
    names = _node_names(first)
    owners = _tensor_owners(first.segments)
    nodes = []
    for index, pair in enumerate(pairs):
        shared_with = _shared_with(pair.segment, index, owners)
        tensors = tuple(
            RecordedTensor(tensor, shape)
            for tensor, shape in pair.segment.parameters.items()
            if owners[tensor] in (index, shared_with)
        )
        operation = pair.operation(tensors, total_bytes, second is None)
        reads = tuple(_input_name(read, names) for read in pair.segment.reads)
        owner = None if shared_with is None else names[shared_with]
        nodes.append(Node(names[index], operation, reads, owner))
    if not nodes:
        raise InputError(f"{name} performs no operation on its inputs")
    output = nodes[-1].name
    if first.unused:
        nodes.insert(0, Node(_free_name("unused_parameters", names), _unused(first.unused), ()))
    inputs = {key: _input_spec(first, key, given) for key, given in first.inputs.items()}
    dimensions = {RECORDED_BATCH: first.batch}
    return Graph(name, inputs, tuple(nodes), output, None, dimensions, tuple(notes))


class _Pair:
    """One segment at two batches; the same recording twice if there is only one."""

    def __init__(
        self, segment: CapturedSegment, batch: int, other: CapturedSegment, other_batch: int
    ) -> None:
        self.segment, self.batch = segment, batch
        self.other, self.other_batch = other, other_batch
        self.notes: dict[str, None] = {}

    def operation(
        self, tensors: tuple[RecordedTensor, ...], total_bytes: int, one_batch: bool
    ) -> Recorded:
        segment = self.segment
        if one_batch:
            self.notes[ONE_BATCH_NOTE] = None
        work = Work(
            forward=self._gemms(segment.forward, self.other.forward, "n"),
            weight_gradient=self._gemms(segment.weight_gradient, self.other.weight_gradient, "k"),
            input_gradient=self._gemms(segment.input_gradient, self.other.input_gradient, "n"),
            forward_traffic=self._traffic(segment.forward_moved, self.other.forward_moved),
            backward_traffic=self._traffic(segment.backward_moved, self.other.backward_moved),
            kept=self._kept(),
        )
        return Recorded(
            behaves_like=segment.kind or _kind(segment),
            shape=_sample_shape(segment.output_shape, self.batch),
            tensors=tensors,
            recorded_work=work,
            frozen_tensors=tuple(
                RecordedTensor(name, shape) for name, shape in segment.frozen.items()
            ),
            unknown=tuple(
                UnknownOperation(operation, size / total_bytes)
                for operation, size in segment.unknown_bytes.items()
            ),
            notes=tuple(self.notes),
        )

    def _affine(self, here: int, there: int) -> Affine:
        """The line through both recordings; proportional if it is negative at zero."""
        if self.other_batch == self.batch:
            return Affine(0, _exact(here, self.batch))
        per_sample = _exact(there - here, self.other_batch - self.batch)
        fixed = here - per_sample * self.batch
        if fixed < 0 or per_sample < 0:  # for example pairs of samples: not affine in the batch
            self.notes[SQUARE_NOTE] = None
            return Affine(0, _exact(here, self.batch))
        return Affine(fixed, per_sample)

    def _traffic(self, here: Moved, there: Moved) -> Traffic:
        read = self._affine(here.read_elements, there.read_elements)
        written = self._affine(here.written_elements, there.written_elements)
        other = self._affine(here.other_bytes, there.other_bytes)
        return Traffic(
            activations=read.per_sample + written.per_sample,
            weights=read.fixed,
            weight_gradients=written.fixed,
            other_bytes=other.per_sample,
        )

    def _kept(self) -> Kept:
        elements = self._affine(self.segment.kept_elements, self.other.kept_elements)
        other = self._affine(self.segment.kept_other_bytes, self.other.kept_other_bytes)
        return Kept(
            elements=elements.per_sample,
            other_bytes=other.per_sample,
            step_bytes=int(elements.fixed * 4 + other.fixed),
        )

    def _gemms(
        self, here: Sequence[CapturedGemm], there: Sequence[CapturedGemm], likely: Axis
    ) -> tuple[Gemm, ...]:
        """GEMMs of one sample; equal ones are counted together."""
        counts: Counter[tuple[Number, Number, Number, Axis]] = Counter()
        for product, other in zip(here, there, strict=True):
            sizes = {axis: getattr(product, axis) for axis in _AXES}
            growing = [axis for axis in _AXES if getattr(other, axis) != sizes[axis]]
            if self.other_batch == self.batch:  # one recording: assume the usual axis of the batch
                growing = [likely if product.count == 1 else "count"]
            if len(growing) > 1:
                self.notes[SQUARE_NOTE] = None
            grows: Axis = growing[0] if growing else "nothing"
            if grows != "nothing":
                sizes[grows] = _exact(sizes[grows], self.batch)
            key = (sizes["m"], sizes["n"], sizes["k"], grows)
            counts[key] += sizes["count"]
        return tuple(Gemm(m, n, k, count, grows) for (m, n, k, grows), count in counts.items())


def same_operations(first: RecordedStep, second: RecordedStep) -> bool:
    """Whether the same modules ran the same GEMMs in the same order at both batches."""
    return len(first.segments) == len(second.segments) and all(
        a.module == b.module
        and len(a.forward) == len(b.forward)
        and len(a.input_gradient) == len(b.input_gradient)
        and len(a.weight_gradient) == len(b.weight_gradient)
        for a, b in zip(first.segments, second.segments, strict=True)
    )


def _exact(total: Number, parts: int) -> Number:
    return total // parts if isinstance(total, int) and total % parts == 0 else total / parts


def _kind(segment: CapturedSegment) -> str:
    operations = [name for name in segment.operation_bytes if not name.endswith("_backward")]
    if not operations:
        return "recorded"

    def weight(name: str) -> tuple[int, int]:
        return segment.operation_flops[name], segment.operation_bytes[name]

    return kind_of(max(operations, key=weight))


def _sample_shape(shape: tuple[int, ...], batch: int) -> tuple[int, ...]:
    """The shape of one sample; a first dimension of several times the batch is divided by it."""
    if not shape or shape[0] % batch:
        return shape
    return shape[1:] if shape[0] == batch else (shape[0] // batch, *shape[1:])


def _node_names(recording: RecordedStep) -> list[str]:
    """The path of each segment's module, numbered from the second segment of a module on."""
    taken: set[str] = set(recording.inputs)
    names = []
    for segment in recording.segments:
        names.append(_free_name(segment.module or recording.root, taken))
        taken.add(names[-1])
    return names


def _free_name(wanted: str, taken: Container[str]) -> str:
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}#{number}"
    return name


def _input_name(read: int | str, names: Sequence[str]) -> str:
    return read if isinstance(read, str) else names[read]


def _tensor_owners(segments: Sequence[CapturedSegment]) -> dict[str, int]:
    """The first segment that used each trainable tensor."""
    owners: dict[str, int] = {}
    for index, segment in enumerate(segments):
        for tensor in segment.parameters:
            owners.setdefault(tensor, index)
    return owners


def _shared_with(segment: CapturedSegment, index: int, owners: dict[str, int]) -> int | None:
    """The first earlier segment whose tensors this one uses again."""
    earlier = (owners[tensor] for tensor in segment.parameters if owners[tensor] != index)
    return min(earlier, default=None)


def _unused(tensors: dict[str, tuple[int, ...]]) -> Recorded:
    held = tuple(RecordedTensor(name, shape) for name, shape in tensors.items())
    return Recorded(
        "recorded", (), held, Work(), notes=("has parameters that no output depends on",)
    )


def _input_spec(recording: RecordedStep, name: str, given: RecordedInput) -> InputSpec:
    shape = _sample_shape(given.shape, recording.batch)
    if given.is_float:
        return InputSpec(shape)
    return InputSpec(shape, "integer", recording.index_limits.get(name, 1))
