"""Memory traffic of PyTorch's operations, and the operations whose cost is their traffic.

Needs no PyTorch: operations are identified by name (``aten::relu``).
"""

from typing import Any, Literal, TypeAlias

Movement: TypeAlias = Literal["nothing", "gather", "read_twice", "all"]


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ALLOCATIONS = _names(
    "empty empty_like empty_strided empty_permuted new_empty new_empty_strided resize_ "
    "_unsafe_view unsafe_split unsafe_split_with_sizes lift_fresh lift _reshape_alias "
    "_local_scalar_dense sym_size sym_stride "
    "sym_numel sym_storage_offset is_same_size _assert_async _assert_tensor_metadata set_ "
    "as_strided_ squeeze_ unsqueeze_ transpose_ t_ detach_ "
    "_efficientzerotensor"
)
"""Operations that PyTorch does not mark as views but that move no data."""

_GATHERS = _names("embedding index index_select gather take take_along_dim")
"""Operations that read as much of their table as they write."""

_NORMALISATIONS = _names(
    "native_batch_norm _native_batch_norm_legit _native_batch_norm_legit_functional "
    "batch_norm_update_stats _batch_norm_with_update native_batch_norm_backward "
    "native_layer_norm native_layer_norm_backward native_group_norm native_group_norm_backward "
    "_fused_rms_norm _fused_rms_norm_backward"
)
"""Operations that read their input once for statistics and once to apply them."""

_BYTES_ONLY = _NORMALISATIONS | _names(
    # softmax and losses
    "_softmax _softmax_backward_data _safe_softmax _log_softmax _log_softmax_backward_data "
    "nll_loss_forward nll_loss_backward nll_loss2d_forward nll_loss2d_backward mse_loss "
    "mse_loss_backward smooth_l1_loss smooth_l1_loss_backward huber_loss huber_loss_backward "
    "binary_cross_entropy binary_cross_entropy_backward binary_cross_entropy_with_logits "
    "soft_margin_loss soft_margin_loss_backward kl_div "
    # activations that carry no pointwise tag, and gated units
    "native_dropout native_dropout_backward glu glu_backward _prelu_kernel _prelu_kernel_backward "
    "rrelu_with_noise rrelu_with_noise_backward log_sigmoid_forward log_sigmoid_backward "
    "_thnn_fused_lstm_cell _thnn_fused_gru_cell hardswish hardswish_ hardswish_backward "
    # pools, resizing, padding
    "max_pool2d_with_indices max_pool2d_with_indices_backward max_pool3d_with_indices "
    "max_pool3d_with_indices_backward avg_pool1d avg_pool2d avg_pool2d_backward avg_pool3d "
    "avg_pool3d_backward _adaptive_avg_pool2d _adaptive_avg_pool2d_backward _adaptive_avg_pool3d "
    "_adaptive_avg_pool3d_backward adaptive_max_pool2d adaptive_max_pool2d_backward "
    "adaptive_max_pool3d adaptive_max_pool3d_backward upsample_nearest1d "
    "upsample_nearest1d_backward upsample_nearest2d upsample_nearest2d_backward "
    "upsample_nearest3d upsample_nearest3d_backward upsample_bilinear2d "
    "upsample_bilinear2d_backward _upsample_bilinear2d_aa _upsample_bilinear2d_aa_backward "
    "upsample_linear1d upsample_linear1d_backward upsample_trilinear3d "
    "upsample_trilinear3d_backward upsample_bicubic2d upsample_bicubic2d_backward "
    "constant_pad_nd reflection_pad1d reflection_pad1d_backward reflection_pad2d "
    "reflection_pad2d_backward replication_pad2d replication_pad2d_backward im2col col2im "
    # reductions and scans
    "sum mean amax amin max min argmax argmin prod any all var std var_mean std_mean norm "
    "linalg_vector_norm logsumexp cumsum cumprod logcumsumexp count_nonzero median nansum "
    # moving values about
    "embedding embedding_dense_backward embedding_renorm_ _embedding_bag "
    "_embedding_bag_dense_backward index index_select index_select_backward gather "
    "gather_backward take scatter scatter_ scatter_add scatter_add_ index_add index_add_ "
    "index_copy index_copy_ index_put index_put_ _index_put_impl_ _unsafe_index "
    "_unsafe_index_put index_fill index_fill_ select_backward slice_backward "
    "diagonal_backward select_scatter slice_scatter cat stack repeat repeat_interleave roll "
    "flip tril triu tril_ triu_ rot90 sort topk unique_dim bincount histc one_hot "
    "masked_select masked_scatter nonzero as_strided_scatter pixel_shuffle pixel_unshuffle "
    "channel_shuffle split_with_sizes_copy unbind_copy _pad_packed_sequence "
    "_pack_padded_sequence _pack_padded_sequence_backward "
    # copies, constants, random numbers
    "clone copy copy_ _to_copy contiguous fill fill_ zero_ zeros zeros_like ones ones_like full "
    "full_like new_zeros new_ones new_full scalar_tensor arange linspace eye rand rand_like "
    "randn randn_like randint randint_like randperm bernoulli bernoulli_ normal_ uniform_ "
    "multinomial normal exponential_ tril_indices triu_indices floor_divide polar"
)
"""Operations whose cost is their traffic, besides those that PyTorch tags as pointwise."""


def movement(name: str, is_view: bool) -> Movement:
    """Which part of its arguments and results an operation moves."""
    short = name.removeprefix("aten::")
    if is_view or short in _ALLOCATIONS:
        return "nothing"
    if short in _GATHERS:
        return "gather"
    return "read_twice" if short in _NORMALISATIONS else "all"


def is_understood_by_bytes(name: str, is_pointwise: bool) -> bool:
    """Whether its traffic determines the cost of an operation."""
    return is_pointwise or (
        name.startswith("aten::") and name.removeprefix("aten::") in _BYTES_ONLY
    )


def hidden_workspace(name: str, result: Any) -> int:
    """Elements that a kernel saves for backward and that fake tensors do not show.

    The LSTM of oneDNN saves the four gates and the cell of every token in its workspace.
    """
    return 5 * int(result[0].numel()) if name == "aten::mkldnn_rnn_layer" else 0


_KINDS = {
    "conv": "convolution _convolution",
    "linear": "addmm mm linear mv addmv _addmm_activation _scaled_mm _grouped_mm",
    "attention": "bmm baddbmm "
    "_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention "
    "_scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention",
    "batch_norm": "native_batch_norm _native_batch_norm_legit _batch_norm_with_update",
    "layer_norm": "native_layer_norm",
    "lstm": "mkldnn_rnn_layer",
    "group_norm": "native_group_norm",
    "rms_norm": "_fused_rms_norm",
    "embedding": "embedding _embedding_bag",
    "max_pool": "max_pool2d_with_indices max_pool3d_with_indices adaptive_max_pool2d",
    "avg_pool": "avg_pool1d avg_pool2d avg_pool3d",
    "global_avg_pool": "_adaptive_avg_pool2d _adaptive_avg_pool3d mean",
    "add": "add add_ sub sub_",
    "multiply": "mul mul_ div div_",
    "concat": "cat stack",
    "dropout": "native_dropout bernoulli_ bernoulli",
    "cross_entropy": "_log_softmax nll_loss_forward nll_loss2d_forward",
    "activation": "relu relu_ gelu silu silu_ sigmoid tanh elu leaky_relu leaky_relu_ hardtanh "
    "hardtanh_ hardswish hardswish_ hardsigmoid mish softplus _softmax _safe_softmax glu",
}
_KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names.split()}


def kind_of(name: str) -> str:
    """The kind of operation with the same cost model; ``recorded`` if there is none."""
    return _KIND_OF.get(name.removeprefix("aten::"), "recorded")
