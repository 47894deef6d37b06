"""A recorded training step: segments, each a run of operations of one module."""

from collections import Counter
from dataclasses import dataclass, field

from paceline.workload.capture.gemms import CapturedGemm


@dataclass
class Moved:
    """Elements of floating-point tensors read and written, and bytes of all other tensors."""

    read_elements: int = 0
    written_elements: int = 0
    other_bytes: int = 0

    def add(self, elements: int, item_bytes: int, is_float: bool, is_write: bool) -> None:
        if not is_float:
            self.other_bytes += elements * item_bytes
        elif is_write:
            self.written_elements += elements
        else:
            self.read_elements += elements


@dataclass
class CapturedSegment:
    """Consecutive operations of one call of a module, without those of its submodules.

    ``module`` is its path in the model; ``reads`` are indices of earlier segments, or names of
    inputs; ``frozen`` are tensors without a gradient that were first used here; ``kind`` is the
    kind of operation that it is costed as, if known. GEMMs are in the order of execution, so that
    two recordings can be compared.
    """

    module: str
    reads: dict[int | str, None] = field(default_factory=dict)
    parameters: dict[str, tuple[int, ...]] = field(default_factory=dict)
    frozen: dict[str, tuple[int, ...]] = field(default_factory=dict)
    forward: list[CapturedGemm] = field(default_factory=list)
    input_gradient: list[CapturedGemm] = field(default_factory=list)
    weight_gradient: list[CapturedGemm] = field(default_factory=list)
    forward_moved: Moved = field(default_factory=Moved)
    backward_moved: Moved = field(default_factory=Moved)
    kept_elements: int = 0
    kept_other_bytes: int = 0
    output_shape: tuple[int, ...] = ()
    kind: str | None = None
    operation_flops: Counter[str] = field(default_factory=Counter)
    operation_bytes: Counter[str] = field(default_factory=Counter)
    unknown_bytes: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class RecordedInput:
    """An input of the model: its shape with the batch first."""

    shape: tuple[int, ...]
    is_float: bool


@dataclass
class RecordedStep:
    """One training step at one batch size; ``root`` names the operations of the model itself.

    ``unused`` are trainable tensors that the step did not use, by name; ``index_limits`` are the
    rows of the table that an integer input indexes.
    """

    root: str
    batch: int
    segments: list[CapturedSegment]
    inputs: dict[str, RecordedInput]
    unused: dict[str, tuple[int, ...]]
    index_limits: dict[str, int]

    @property
    def total_bytes(self) -> int:
        return sum(sum(segment.operation_bytes.values()) for segment in self.segments)
