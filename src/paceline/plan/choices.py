"""What a plan chooses between beside its degrees."""

from enum import StrEnum


class ContextForm(StrEnum):
    """How devices that share out the tokens of a sample meet keys and values of each other."""

    RING = "ring"
    """Keys and values go round while attention computes; each device has a piece from the
    beginning and one from the end, so that a causal mask leaves all of them as much."""
    RING_IN_ORDER = "ring_in_order"
    """The same with neighbouring tokens on a device: of a causal mask the last one sees most."""
    GATHER = "gather"
    """All keys and values are gathered under the first part of attention; balanced."""
    ULYSSES = "ulysses"
    """Heads are exchanged for tokens before attention, and back after it."""


class Offload(StrEnum):
    """What leaves the device for the memory of its host."""

    OPTIMISER = "optimiser"
    """State of the optimiser, which updates on the host."""
    ACTIVATIONS = "activations"
    """What is kept from forward to backward."""


class Recompute(StrEnum):
    """Which activations are computed again in backward instead of being kept."""

    NONE = "none"
    SELECTIVE = "selective"
    """The scores and softmax of attention, which are large and cheap."""
    FULL = "full"
    """Everything but the input of each block."""
    OPERATION = "op"
    """In each block all but attention and the outputs of every second linear layer."""


SEARCHED_RECOMPUTATIONS = (Recompute.NONE, Recompute.SELECTIVE, Recompute.FULL)
"""Those that searches try."""


class OptimiserState(StrEnum):
    """How the optimiser keeps its momenta; master copies of weights stay as they are."""

    FP32 = "fp32"
    BF16 = "bf16"
    EIGHT_BIT = "8bit"
    """Blocks of 8-bit numbers, each block with a scale in 32 bits."""


class PipelineSchedule(StrEnum):
    """The order in which a pipeline stage works through micro-batches."""

    GPIPE = "gpipe"
    """All forwards, then all backwards."""
    ONE_F_ONE_B = "1f1b"
    """One forward, one backward in the steady state; interleaved with several chunks."""
    ZERO_BUBBLE = "zero-bubble"
    """1F1B whose gradients of weights are computed later, where it would be idle (ZB-H1)."""
    ZB_V = "zb-v"
    """The same with two chunks per stage, the second on the way back (ZB-V)."""
    DUALPIPE = "dualpipe"
    """As zb-v, messages within a stage running under passes of other micro-batches (DualPipeV)."""

    @property
    def splits_backward(self) -> bool:
        """Whether gradients of inputs and of weights are passes of their own."""
        return self in (self.ZERO_BUBBLE, self.ZB_V, self.DUALPIPE)

    @property
    def is_v(self) -> bool:
        """Whether the first stage holds the first and the last chunk."""
        return self in (self.ZB_V, self.DUALPIPE)

    @property
    def chunks_of_stage(self) -> int:
        """Chunks per stage of a schedule that splits backward."""
        return 2 if self.is_v else 1


WHOLE_BACKWARD = tuple(each for each in PipelineSchedule if not each.splits_backward)
"""Schedules whose backward is one pass."""
