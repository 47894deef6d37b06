"""Options of a plan besides its degrees."""

from enum import StrEnum


class ContextForm(StrEnum):
    """How context-parallel devices exchange keys and values."""

    RING = "ring"
    """Ring attention: keys and values circulate while attention computes. Each device has one
    piece from the beginning and one from the end, which balances causal masks."""
    RING_IN_ORDER = "ring_in_order"
    """Ring attention with consecutive tokens per device, unbalanced with causal masks."""
    GATHER = "gather"
    """All keys and values are gathered, overlapping the first part of attention; balanced."""
    ULYSSES = "ulysses"
    """Heads are exchanged for tokens before attention, and back after it."""


class ExpertDispatch(StrEnum):
    """How tokens are sent to the devices of their experts."""

    ALL_TO_ALL = "all_to_all"
    """One copy of a token for each of its experts."""
    DEEPEP = "deepep"
    """One copy of a token for each node with some of its experts, forwarded inside the node to each
    device with some of them (DeepEP; also Megatron's flex dispatcher)."""


class Offload(StrEnum):
    """State that is offloaded to host memory."""

    OPTIMIZER = "optimizer"
    """Optimizer state; the update runs on the host."""
    ACTIVATIONS = "activations"
    """Activations kept from forward to backward."""
    WEIGHTS = "weights"
    """Shards of weights: each block is copied to the device before it computes (ZeRO stage 3)."""


class Recompute(StrEnum):
    """Which activations are recomputed in backward instead of kept."""

    NONE = "none"
    SELECTIVE = "selective"
    """The scores and softmax of attention, which are large and cheap (Korthikanti et al. 2022), or
    chosen modules of each block (Megatron-LM's ``--recompute-modules``)."""
    FULL = "full"
    """Everything but the input of each block."""
    OPERATION = "op"
    """All operations of a block except attention and every second linear layer (torchtitan)."""


class Module(StrEnum):
    """Modules of a block that can be recomputed, named as Megatron-LM names them."""

    CORE_ATTENTION = "core_attn"
    """Scores and weighted sum of attention."""
    LAYER_NORM = "layernorm"
    """Outputs of the norms before attention and feed-forward."""
    MLP = "mlp"
    """The dense feed-forward network."""
    MOE = "moe"
    """Router, experts and shared experts."""
    MOE_ACTIVATION = "moe_act"
    """Outputs of the activation of experts."""
    SHARED_EXPERTS = "shared_experts"
    """Shared experts."""
    LATENT_PROJECTION = "mla_up_proj"
    """Up-projections and rotary positions of latent attention."""


SEARCHED_RECOMPUTATIONS = (Recompute.NONE, Recompute.SELECTIVE, Recompute.FULL)
"""Modes that `advise` searches."""


class LossKernel(StrEnum):
    """How a program computes the cross entropy of tokens."""

    PLAIN = "plain"
    """Probabilities and gradients of the scores are tensors in fp32."""
    FUSED = "fused"
    """One kernel; gradients overwrite the scores (Liger, Transformer Engine)."""
    CHUNKED = "chunked"
    """Output layer and loss chunk by chunk, so the scores never exist as a whole (Liger's fused
    linear cross entropy)."""


TORCH_LOSS_COPIES = 3.0
"""Copies of the scores in fp32 at the peak of ``torch.nn.functional.cross_entropy``: log-
probabilities and two gradients."""


class OptimizerState(StrEnum):
    """Precision of optimizer momenta; master copies of weights stay in fp32."""

    FP32 = "fp32"
    BF16 = "bf16"
    EIGHT_BIT = "8bit"
    """Blocks of 8-bit numbers, each with a 32-bit scale."""


class PipelineSchedule(StrEnum):
    """The order in which a pipeline stage works through micro-batches."""

    GPIPE = "gpipe"
    """All forwards, then all backwards."""
    ONE_F_ONE_B = "1f1b"
    """One forward, one backward in the steady state; interleaved with several chunks."""
    ZERO_BUBBLE = "zero-bubble"
    """1F1B with weight gradients delayed into the bubble (ZB-H1, Qi et al. 2023)."""
    ZB_V = "zb-v"
    """ZB-H1 with two chunks per stage in V shape (ZB-V)."""
    DUALPIPE = "dualpipe"
    """ZB-V with intra-stage messages overlapping passes of other micro-batches (DualPipeV)."""

    @property
    def splits_backward(self) -> bool:
        """Whether input and weight gradients are separate passes."""
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
"""Schedules with one backward pass."""
