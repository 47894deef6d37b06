"""Sizes and choices of transformer, state-space and hybrid architectures."""

from dataclasses import dataclass, replace
from typing import Any, Literal

from paceline.errors import InputError


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """Multi-head latent attention (MLA, DeepSeek-V2): keys and values from one latent per token.

    ``query_rank`` is the rank of the query projection, 0 for full rank. A head has ``plain_dim``
    features without position, ``rotary_dim`` with rotary position (all heads share their keys)
    and values of ``value_dim``.
    """

    query_rank: int
    key_rank: int
    plain_dim: int
    rotary_dim: int
    value_dim: int


@dataclass(frozen=True, slots=True)
class Experts:
    """``count`` experts of width ``inner``, of which each token uses ``top_k``.

    ``shared_inner`` is the width of a shared expert that every token uses, gated if
    ``shared_gate``; ``bias`` gives the router and the experts biases. Routed experts work on a
    projection of the tokens to ``latent`` features, 0 for the tokens themselves.
    """

    count: int
    top_k: int
    inner: int
    shared_inner: int = 0
    shared_gate: bool = False
    bias: bool = False
    latent: int = 0


@dataclass(frozen=True, slots=True)
class StateSpace:
    """A Mamba layer of width ``inner`` with a state of ``state`` elements per channel.

    With ``heads`` it is Mamba-2: ``groups`` of heads share the matrices B and C, scans run in
    chunks of ``chunk`` tokens, ``gated_norm`` precedes the output projection. Without heads it is
    Mamba: step sizes have rank ``step_rank``, and ``inner_norms`` normalises steps, B and C.
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
class LinearAttention:
    """Attention with a state per head instead of the keys of all tokens.

    ``groups`` of heads share queries and keys of ``key_dim``; values have ``value_dim``. With a
    ``kernel`` it is the gated delta rule (Yang et al. 2025, Qwen3-Next), which filters queries,
    keys and values; without, lightning attention (Qin et al. 2024, MiniMax).
    """

    heads: int
    groups: int
    key_dim: int
    value_dim: int
    kernel: int = 0
    chunk: int = 256


@dataclass(frozen=True, slots=True)
class LayerKind:
    """Kind of one layer; ``window`` is the width of sliding-window attention, 0 for none.

    Several ``mixers`` read the same norm and their outputs are added.
    """

    mixers: tuple[Literal["attention", "state_space", "linear"], ...] = ("attention",)
    feed_forward: Literal["dense", "experts", "none"] = "dense"
    window: int = 0


@dataclass(frozen=True, slots=True)
class TransformerShape:
    """Sizes and choices of an architecture.

    ``learned_positions`` and ``segments`` are rows of embedding tables, 0 for none;
    ``relative_buckets`` are rows of a table of relative positions (T5). ``parallel`` blocks
    feed attention and feed-forward from one norm or from two. ``norm_at`` places norms at the
    inputs of attention and feed-forward (``before``), at their outputs (``after``), at both, or
    after the residual sum (``after_sum``); the first layer has none before its attention
    without ``first_norm``; ``norm_of_heads`` normalises queries and keys per head, or over
    their ``whole`` width; ``attention_gate`` multiplies the output of attention. ``kinds``
    describes each layer where layers differ. ``further_kinds`` are the layers that predict the
    token after the next one in training (multi-token prediction, DeepSeek-V3), with their own
    loss and the common embedding and head. ``adapter_rank`` is the rank of adapters that are
    trained instead of the weights. ``dropout`` applies to the outputs of attention and
    feed-forward, to a normalised embedding and to tokens before their labels.

    ``head`` selects the training loss: next ``tokens``, ``masked`` tokens, ``pretraining`` (masked
    tokens and sentence order), ``classes``, ``token_classes``, ``span`` (start and end of an
    answer), ``order`` of two sentences, or ``features`` for a network without a head. Only the
    first ``scored_positions`` of masked tokens are scored, 0 for all.
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
    first_norm: bool = True
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
    linear: LinearAttention | None = None
    attention_gate: bool = False
    kinds: tuple[LayerKind, ...] = ()
    further_kinds: tuple[LayerKind, ...] = ()
    adapter_rank: int = 0
    dropout: float = 0.0
    scored_positions: int = 0

    def __post_init__(self) -> None:
        if self.heads % self.kv_heads:
            raise InputError(
                f"{self.heads} heads are not divisible by {self.kv_heads} key-value heads"
            )
        if len(self.kinds) not in (0, self.layers):
            raise InputError(f"{len(self.kinds)} layer kinds for {self.layers} layers")

    @classmethod
    def multi_head(cls, hidden: int, layers: int, heads: int, **choices: Any) -> "TransformerShape":
        """The proportions of Vaswani et al. (2017), which BERT, GPT, BART and ViT kept.

        Heads divide the width, each has its own keys and values, and the feed-forward is four
        times as wide.
        """
        if hidden % heads:
            raise InputError(
                f"width {hidden} is not divisible by {heads} heads",
                "choose a number of heads that divides the width",
            )
        return cls(
            hidden,
            layers,
            heads=heads,
            kv_heads=heads,
            head_dim=hidden // heads,
            inner=4 * hidden,
            **choices,
        )

    def replaced(self, **changes: Any) -> "TransformerShape":
        return replace(self, **changes)

    def layer(self, number: int) -> LayerKind:
        if self.kinds:
            return self.kinds[number]
        return LayerKind(feed_forward="experts" if self.experts else "dense")

    def dimensions(self) -> dict[str, int]:
        """Sizes for `Graph.dimensions`."""
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
