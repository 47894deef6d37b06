"""PyTorch modules of operations on sequences.

On meta or fake tensors, work that depends on data (routing to experts, clusters of tokens) uses the
expected numbers of tokens of the graph's costs.
"""

import itertools
import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_layers import Fields, Shapes, builds, has_no_data

EULER = 0.5772156649015329


@builds("position_embedding")
class PositionEmbedding(nn.Module):
    """Adds a learned row per position."""

    def __init__(self, node: Fields, shapes: Shapes) -> None:
        super().__init__()
        self.weight = new_weight(node["length"], shapes[0][-1])

    def forward(self, tokens: Tensor) -> Tensor:
        return tokens + self.weight[: tokens.shape[-2]]


@builds("class_token")
class ClassToken(nn.Module):
    """Prepends one learned token to every sample."""

    def __init__(self, _: Fields, shapes: Shapes) -> None:
        super().__init__()
        self.weight = new_weight(1, shapes[0][-1])

    def forward(self, tokens: Tensor) -> Tensor:
        return torch.cat([self.weight.expand(tokens.shape[0], -1, -1), tokens], dim=1)


@builds("rotary")
class Rotary(nn.Module):
    """Rotates pairs of features of each head by an angle proportional to the position."""

    def __init__(self, node: Fields, _: Shapes) -> None:
        super().__init__()
        self._head_dim = node["head_dim"]

    def forward(self, tokens: Tensor) -> Tensor:
        """Rotate feature i of a head with feature i + head_dim / 2."""
        half = self._head_dim // 2
        steps = torch.arange(half, device=tokens.device) / half
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        angles = positions[:, None] * 10000.0**-steps
        cosine, sine = (f(angles).to(tokens.dtype)[:, None] for f in (torch.cos, torch.sin))
        heads = tokens.unflatten(-1, (-1, self._head_dim))
        first, second = heads[..., :half], heads[..., half : 2 * half]
        turned = [first * cosine - second * sine, second * cosine + first * sine]
        return torch.cat([*turned, heads[..., 2 * half :]], dim=-1).flatten(-2)


@builds("attention")
class Attention(nn.Module):
    """Softmax attention; ``fused`` uses PyTorch's kernel, otherwise scores go to memory."""

    def __init__(self, node: Fields, _: Shapes) -> None:
        super().__init__()
        self._node, heads = node, node["heads"]
        self.sinks = new_weight(heads) if node.get("sinks") else None
        buckets = node.get("relative_buckets", 0)
        self.distances = new_weight(buckets, heads) if buckets else None

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        heads, kv_heads = self._node["heads"], self._node["kv_heads"]
        query, key, value = (
            tokens.unflatten(-1, (count, -1)).transpose(1, 2)
            for tokens, count in ((query, heads), (key, kv_heads), (value, kv_heads))
        )
        if self._node["fused"] and self.sinks is None:
            mask = self._mask(query, key)
            result = F.scaled_dot_product_attention(
                *(query, key, value),
                attn_mask=mask,
                is_causal=self._node["causal"] and mask is None,
                enable_gqa=heads != kv_heads,
            )
        else:
            result = self._written_out(query, key, value)
        return result.transpose(1, 2).flatten(-2)

    def _written_out(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        heads, kv_heads = self._node["heads"], self._node["kv_heads"]
        if heads != kv_heads:
            key, value = (x.repeat_interleave(heads // kv_heads, 1) for x in (key, value))
        scores = query @ key.transpose(-2, -1) / math.sqrt(self._node["head_dim"])
        mask = self._mask(query, key)
        if mask is not None:
            scores = scores + mask
        elif self._node["causal"]:
            scores = masked(scores)
        if self.sinks is None:
            return scores.softmax(-1) @ value
        sinks = self.sinks[:, None, None].expand(*scores.shape[:-1], 1)
        return torch.cat([scores, sinks], dim=-1).softmax(-1)[..., :-1] @ value

    def _mask(self, query: Tensor, key: Tensor) -> "Tensor | None":
        """Bias of the scores, unless a causal mask is sufficient."""
        window, causal = self._node.get("window", 0), self._node["causal"]
        if self.distances is None and not window:
            return None
        queries, keys = query.shape[-2], key.shape[-2]
        places = torch.arange(keys, device=query.device)
        apart = (places[keys - queries :, None] if queries <= keys else places[:, None]) - places
        hidden = apart < 0 if causal else torch.zeros_like(apart, dtype=torch.bool)
        if window:
            hidden = hidden | (apart >= window)
        mask = query.new_zeros(queries, keys).masked_fill(hidden, -math.inf)
        if self.distances is None:
            return mask
        added = F.embedding(distance_buckets(apart, len(self.distances), causal), self.distances)
        return mask + added.permute(2, 0, 1).to(query.dtype)


@builds("relative_attention")
class RelativeAttention(nn.Module):
    """Attention with relative positions; keys may start before the queries (a memory)."""

    def __init__(self, node: Fields, _: Shapes) -> None:
        super().__init__()
        heads, head_dim = node["heads"], node["head_dim"]
        self._heads, self._head_dim = heads, head_dim
        self.positions = new_weight(heads * head_dim, heads * head_dim)
        self.content_bias = new_weight(heads, head_dim)
        self.position_bias = new_weight(heads, head_dim)

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        query, key, value = (x.unflatten(-1, (self._heads, -1)) for x in (query, key, value))
        distances = F.linear(self._sinusoids(key), self.positions).unflatten(-1, (self._heads, -1))
        by_content = (query + self.content_bias).transpose(1, 2) @ key.permute(0, 2, 3, 1)
        by_position = (query + self.position_bias).transpose(1, 2) @ distances.permute(1, 2, 0)
        scores = (by_content + shifted(by_position)) / math.sqrt(self._head_dim)
        result = masked(scores).softmax(-1) @ value.transpose(1, 2)
        return result.transpose(1, 2).flatten(-2)

    def _sinusoids(self, key: Tensor) -> Tensor:
        width, count = self._heads * self._head_dim, key.shape[1]
        distance = torch.arange(count - 1, -1, -1, device=key.device, dtype=key.dtype)
        steps = torch.arange(0, width, 2, device=key.device, dtype=key.dtype) / width
        angles = distance[:, None] * 10000.0**-steps
        return torch.cat([angles.sin(), angles.cos()], dim=-1)


@builds("additive_attention")
class AdditiveAttention(nn.Module):
    """Scores are a normalised vector times tanh(query + key)."""

    def __init__(self, node: Fields, _: Shapes) -> None:
        super().__init__()
        width = node["width"]
        self.query, self.key = new_weight(width, width), new_weight(width, width)
        self.score, self.bias = new_weight(width), nn.Parameter(torch.zeros(width))
        self.norm = nn.Parameter(torch.full((1,), width**-0.5))

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        wanted, offered = F.linear(queries, self.query), F.linear(keys, self.key)
        sums = torch.tanh(wanted[:, :, None] + offered[:, None] + self.bias)
        direction = self.score / self.score.norm() * self.norm
        scores = F.linear(sums, direction[None]).squeeze(-1)
        return scores.softmax(-1) @ keys


@builds("lstm")
class Lstm(nn.LSTM):
    """PyTorch's LSTM, returning the states of all tokens; initial state and cell are optional."""

    def __init__(self, node: Fields, shapes: Shapes) -> None:
        super().__init__(
            shapes[0][-1],
            node["hidden"],
            num_layers=node["layers"],
            bias=node["bias"],
            batch_first=True,
            bidirectional=node["bidirectional"],
        )

    def forward(self, tokens: Tensor, *start: Tensor) -> Tensor:
        states, _ = super().forward(tokens, tuple(own[None] for own in start) or None)
        return states


@builds("moe")
class MixtureOfExperts(nn.Module):
    """Routes each token to the experts with the highest scores and sums their weighted results."""

    def __init__(self, node: Fields, shapes: Shapes) -> None:
        super().__init__()
        self._top_k, width = node["top_k"], shapes[0][-1]
        experts, hidden = node["experts"], node["hidden"]
        self.router = new_weight(experts, width)
        self.gate = new_weight(experts, hidden, width) if node["gated"] else None
        self.up, self.down = (
            new_weight(experts, hidden, width),
            new_weight(experts, width, hidden),
        )
        for name in ("router", "gate", "up", "down"):
            weight = getattr(self, name)
            has_bias = node.get("bias", False) and weight is not None
            bias = nn.Parameter(torch.zeros(weight.shape[:-1])) if has_bias else None
            self.register_parameter(f"{name}_bias", bias)

    def forward(self, tokens: Tensor) -> Tensor:
        flat = tokens.flatten(0, -2)
        weights, chosen = F.linear(flat, self.router, self.router_bias).topk(self._top_k, dim=-1)
        weights = weights.softmax(-1).flatten()
        experts = self.router.shape[0]
        if has_no_data(flat):
            return self._evenly(flat, weights).view_as(tokens)
        result = torch.zeros_like(flat)
        for expert in range(experts):
            places = members(chosen.flatten() == expert, 1 / experts)
            made = self._network(flat[places // self._top_k], expert)
            result = result.index_add(0, places // self._top_k, made * weights[places, None])
        return result.view_as(tokens)

    def _evenly(self, flat: Tensor, weights: Tensor) -> Tensor:
        """All experts at once, each on an equal share of the tokens: nothing to route by."""
        experts = self.router.shape[0]
        load = max(1, round(weights.shape[0] / experts))
        places = torch.arange(experts * load, device=flat.device) % weights.shape[0]
        given = flat[places // self._top_k].unflatten(0, (experts, load))
        made = self._network(given, slice(None)).flatten(0, 1) * weights[places, None]
        return torch.zeros_like(flat).index_add(0, places // self._top_k, made)

    def _network(self, tokens: Tensor, which: "int | slice") -> Tensor:
        up = self._product("up", tokens, which)
        if self.gate is None:
            return self._product("down", F.gelu(up), which)
        return self._product("down", F.silu(self._product("gate", tokens, which)) * up, which)

    def _product(self, name: str, tokens: Tensor, which: "int | slice") -> Tensor:
        made = tokens @ getattr(self, name)[which].transpose(-2, -1)
        bias = getattr(self, f"{name}_bias")
        return made if bias is None else made + bias[which][..., None, :]


class Clusters(nn.Module):
    """A vocabulary split by frequency: wide rows for frequent tokens, narrow rows for rare ones."""

    def __init__(self, node: Fields) -> None:
        super().__init__()
        self._width, self._shrink = node["width"], node["shrink"]
        self._edges = [0, *node["cutoffs"], node["vocabulary"]]
        for cluster, (start, end) in enumerate(itertools.pairwise(self._edges)):
            narrow = self._width // self._shrink**cluster
            self.register_parameter(f"rows_{cluster}", new_weight(end - start, narrow))
            if self._shrink > 1:
                name = self.projection_name(cluster)
                self.register_parameter(name, new_weight(self._width, narrow))

    def projection_name(self, cluster: int) -> str:
        return f"projection_{cluster}"

    def projection(self, cluster: int) -> "Tensor | None":
        """The matrix that widens the rows of a cluster; None if they have the full width."""
        return getattr(self, self.projection_name(cluster)) if self._shrink > 1 else None

    def clusters(self, words: Tensor) -> "list[tuple[Tensor, Tensor]]":
        """For each cluster, the positions of its tokens and their numbers within it."""
        total = zipf_sum(self._edges[-1])
        found = []
        for start, end in itertools.pairwise(self._edges):
            share = (zipf_sum(end) - zipf_sum(start)) / total
            places = members((words >= start) & (words < end), share)
            found.append((places, words[places] - start))
        return found


@builds("adaptive_embedding")
class AdaptiveEmbedding(Clusters):
    """A row for each token, widened by the projection of its cluster."""

    def __init__(self, node: Fields, _: Shapes) -> None:
        super().__init__(node)

    def forward(self, words: Tensor) -> Tensor:
        flat = words.flatten()
        parts, order = [], []
        for cluster, (places, numbers) in enumerate(self.clusters(flat)):
            rows = F.embedding(numbers, getattr(self, f"rows_{cluster}"))
            projection = self.projection(cluster)
            parts.append(rows if projection is None else F.linear(rows, projection))
            order.append(places)
        made = parts[0].new_zeros(flat.shape[0], self._width)
        return made.index_copy(0, torch.cat(order), torch.cat(parts)).view(*words.shape, -1)


@builds("adaptive_cross_entropy")
class AdaptiveCrossEntropy(Clusters):
    """Mean cross entropy: tokens score the head, those of a rare cluster also that cluster."""

    def __init__(self, node: Fields, _: Shapes) -> None:
        super().__init__(node)
        rare = len(node["cutoffs"])
        self.cluster_weight = new_weight(rare, self._width)
        self.cluster_bias = nn.Parameter(torch.zeros(rare))
        self.bias = nn.Parameter(torch.zeros(node["vocabulary"]))

    def projection_name(self, cluster: int) -> str:
        """The head has its own projection; the others may share those of an embedding."""
        return super().projection_name(cluster) if cluster else "head_projection"

    def forward(self, tokens: Tensor, words: Tensor) -> Tensor:
        """Tokens of shape (..., width) and their targets."""
        flat, targets = tokens.flatten(0, -2), words.flatten()
        frequent, rare = self._edges[1], len(self._edges) - 2
        narrow = self._narrowed(flat, 0)
        scores = torch.cat(
            [
                F.linear(narrow, self.rows_0, self.bias[:frequent]),
                F.linear(narrow, self.cluster_weight, self.cluster_bias),
            ],
            dim=-1,
        )
        found = self.clusters(targets)
        head_targets = targets.clamp(max=frequent + rare - 1)
        for cluster, (places, _) in enumerate(found[1:]):
            head_targets = head_targets.index_fill(0, places, frequent + cluster)
        total = F.cross_entropy(scores.float(), head_targets, reduction="sum")
        for cluster, (places, numbers) in enumerate(found[1:], start=1):
            rows = getattr(self, f"rows_{cluster}")
            bias = self.bias[self._edges[cluster] : self._edges[cluster + 1]]
            scores = F.linear(self._narrowed(flat[places], cluster), rows, bias)
            total = total + F.cross_entropy(scores.float(), numbers, reduction="sum")
        return total / targets.shape[0]

    def _narrowed(self, tokens: Tensor, cluster: int) -> Tensor:
        projection = self.projection(cluster)
        return tokens if projection is None else F.linear(tokens, projection.t())


def new_weight(*shape: int) -> nn.Parameter:
    """A weight with a standard deviation of 0.02, before `torch_data.initialise`."""
    return nn.Parameter(torch.randn(*shape) * 0.02)


def members(mask: Tensor, share: float) -> Tensor:
    """Indices where ``mask`` is true; without data, a ``share`` of all."""
    if has_no_data(mask):
        return torch.arange(round(share * mask.shape[0]), device=mask.device)
    return mask.nonzero().flatten()


def masked(scores: Tensor) -> Tensor:
    """Mask scores of keys after the query; the last query is aligned with the last key."""
    queries, keys = scores.shape[-2:]
    seen = torch.ones(queries, keys, dtype=torch.bool, device=scores.device)
    return scores.masked_fill(~seen.tril(keys - queries), -math.inf)


def distance_buckets(apart: Tensor, buckets: int, causal: bool, farthest: int = 128) -> Tensor:
    """Bucket of each distance: single for near keys, then logarithmically wider (T5)."""
    found = torch.zeros_like(apart)
    if causal:
        apart = apart.clamp(min=0)
    else:
        buckets //= 2
        found = (apart < 0).long() * buckets
        apart = apart.abs()
    single = max(1, buckets // 2)
    wide = torch.log(apart.clamp(min=1) / single) / math.log(farthest / single) * (buckets - single)
    wide = (single + wide.long()).clamp(max=buckets - 1)
    return found + torch.where(apart < single, apart, wide)


def shifted(scores: Tensor) -> Tensor:
    """Relative shift: move scores by distance to the key at that distance; row i moves by i.

    Column j holds the distance ``keys - 1 - j``; the last query keeps its row.
    """
    batch, heads, queries, keys = scores.shape
    padded = F.pad(scores, (1, 0)).view(batch, heads, keys + 1, queries)
    return padded[:, :, 1:].reshape(batch, heads, queries, keys)


def zipf_sum(count: int) -> float:
    """Sum of 1/k up to ``count``: the weight of the most frequent tokens in running text."""
    return math.log(count) + EULER + 1 / (2 * count) if count else 0.0
