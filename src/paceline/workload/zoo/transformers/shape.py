"""What an architecture of transformers, state spaces or both chose, in numbers and names."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from paceline.errors import InputError


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """Keys and values made from one narrow latent per token (DeepSeek's MLA).

    ``query_rank`` is the width through which queries are made, 0 for directly. A head has
    ``plain_dim`` features without a position, ``rotary_dim`` with one (their keys are shared by
    all heads) and values of ``value_dim``.
    """

    query_rank: int
    key_rank: int
    plain_dim: int
    rotary_dim: int
    value_dim: int


@dataclass(frozen=True, slots=True)
class Experts:
    """``count`` networks of width ``inner`` of which each token uses ``top_k``.

    ``shared_inner`` is the width of one more that every token uses, behind a gate of its own if
    ``shared_gate``; ``bias`` gives the router and the experts biases.
    """

    count: int
    top_k: int
    inner: int
    shared_inner: int = 0
    shared_gate: bool = False
    bias: bool = False


@dataclass(frozen=True, slots=True)
class StateSpace:
    """A Mamba layer ``inner`` wide, with ``state`` numbers per channel.

    With ``heads`` it is Mamba-2's (``groups`` of heads share what goes in and out, in chunks of
    ``chunk`` tokens, ``gated_norm`` before the last matrix); else Mamba's, whose step sizes are
    made from ``step_rank`` numbers, with norms of what is projected if ``inner_norms``.
    """

    inner: int
    state: int
    kernel: int = 4
    conv_bias: bool = True
    bias: bool = False
    step_rank: int = 0
    inner_norms: bool = False
    heads: int = 0
    groups: int = 1
    chunk: int = 256
    gated_norm: bool = True


@dataclass(frozen=True, slots=True)
class LayerKind:
    """What one layer of a stack is; ``window`` is how many tokens attention looks back, 0: all.

    Several ``mixers`` read one norm and are added up.
    """

    mixers: tuple[Literal["attention", "state_space"], ...] = ("attention",)
    feed_forward: Literal["dense", "experts", "none"] = "dense"
    window: int = 0


def layer_kinds(
    layers: int,
    has_experts: Callable[[int], bool] = lambda _: False,
    window: Callable[[int], int] = lambda _: 0,
) -> tuple[LayerKind, ...]:
    """Layers of attention, each dense or with experts and with its window, by its number."""
    return tuple(
        LayerKind(feed_forward="experts" if has_experts(layer) else "dense", window=window(layer))
        for layer in range(layers)
    )


@dataclass(frozen=True, slots=True)
class TransformerShape:
    """Sizes and choices of an architecture.

    ``learned_positions`` and ``segments`` are rows of tables, 0 for none, ``relative_buckets``
    those of a table of distances (T5); ``parallel`` blocks feed attention and feed-forward from
    one norm or from two. Norms stand ``norm_at`` the input of attention and feed-forward
    (``before``), behind them (``after``), on both sides, or behind the sum (``after_sum``);
    ``norm_of_heads`` normalises queries and keys by head, or over their ``whole`` width.
    ``kinds`` says what each layer is where they differ. ``adapter_rank`` is the width of adapters
    that are trained instead of the weights. ``head`` is what it is trained on: next ``tokens``,
    ``masked`` tokens, ``pretraining`` (masked tokens and order of sentences), ``classes``,
    ``token_classes``, ``span`` (where an answer begins and ends), ``order`` of two sentences, or
    no head at all: ``features``.
    """

    hidden: int
    layers: int
    vocabulary: int = 0
    sequence: int = 0
    heads: int = 1
    kv_heads: int = 1
    head_dim: int = 1
    inner: int = 0
    head: str = "tokens"
    labels: int = 2
    learned_positions: int = 0
    segments: int = 0
    relative_buckets: int = 0
    rotary: bool = False
    norm: Literal["layer", "rms"] = "layer"
    norm_bias: bool = True
    norm_of_heads: Literal["no", "head", "whole"] = "no"
    norm_at: Literal["before", "after", "both", "after_sum"] = "before"
    embedding_norm: bool = False
    activation: str = "gelu"
    gated: bool = False
    causal: bool = True
    parallel: str = "no"
    joint_projection: bool = False
    query_bias: bool = True
    key_bias: bool | None = None
    out_bias: bool = True
    mlp_bias: bool = True
    tied: bool = True
    head_bias: bool = False
    sinks: bool = False
    latent: LatentAttention | None = None
    experts: Experts | None = None
    state_space: StateSpace | None = None
    kinds: tuple[LayerKind, ...] = ()
    adapter_rank: int = 0

    def __post_init__(self) -> None:
        if self.heads % self.kv_heads:
            raise InputError(f"{self.heads} heads do not divide by {self.kv_heads} key-value heads")
        if len(self.kinds) not in (0, self.layers):
            raise InputError(f"{len(self.kinds)} layers are described, but there are {self.layers}")

    def replaced(self, **changes: Any) -> "TransformerShape":
        """The same with some choices changed."""
        return replace(self, **changes)

    def layer(self, number: int) -> LayerKind:
        """What one layer is."""
        if self.kinds:
            return self.kinds[number]
        return LayerKind(feed_forward="experts" if self.experts else "dense")

    def dimensions(self) -> dict[str, int]:
        """The numbers that it is described by."""
        found = {
            "hidden": self.hidden,
            "layers": self.layers,
            "heads": self.heads,
            "kv_heads": self.kv_heads,
            "feed_forward": self.inner,
            "vocabulary": self.vocabulary,
        }
        if self.experts:
            found |= {"experts": self.experts.count, "top_k": self.experts.top_k}
        return found
