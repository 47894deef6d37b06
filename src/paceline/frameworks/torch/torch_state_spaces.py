"""PyTorch modules of state-space operations (Mamba, Mamba-2), without fused kernels."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_layers import Fields, Shapes, builds
from torch_sequence_layers import new_weight


@builds("causal_conv")
class CausalConvolution(nn.Module):
    """One filter per channel over the present and earlier tokens."""

    def __init__(self, node: Fields, shapes: Shapes) -> None:
        super().__init__()
        width, self._before = shapes[0][-1], node["kernel"] - 1
        self.weight = new_weight(width, node["kernel"])
        self.bias = nn.Parameter(torch.zeros(width)) if node["bias"] else None

    def forward(self, tokens: Tensor) -> Tensor:
        channels = F.pad(tokens.transpose(1, 2), (self._before, 0))
        made = F.conv1d(channels, self.weight[:, None], self.bias, groups=channels.shape[1])
        return made.transpose(1, 2)


@builds("selective_scan")
class SelectiveScan(nn.Module):
    """Selective scan (Mamba): each token decays the state of every channel and adds to it."""

    def __init__(self, _: Fields, shapes: Shapes) -> None:
        super().__init__()
        width, state = shapes[0][-1], shapes[2][-1]
        self.decay, self.direct = new_weight(width, state), new_weight(width)

    def forward(self, values: Tensor, steps: Tensor, into: Tensor, out: Tensor) -> Tensor:
        steps = F.softplus(steps)[..., None]
        kept = torch.exp(steps * -torch.exp(self.decay))
        added = steps * into[:, :, None] * values[..., None]
        state, made = torch.zeros_like(added[:, 0]), []
        for token in range(values.shape[1]):
            state = kept[:, token] * state + added[:, token]
            made.append((state @ out[:, token, :, None]).squeeze(-1))
        return torch.stack(made, dim=1) + values * self.direct


@builds("state_space_dual")
class StateSpaceDual(nn.Module):
    """State-space duality (Mamba-2): matrix products within chunks, then a scan over chunks."""

    def __init__(self, node: Fields, _: Shapes) -> None:
        super().__init__()
        self._heads, self._groups, self._chunk = node["heads"], node["groups"], node["chunk"]
        self.decay, self.direct = new_weight(self._heads), new_weight(self._heads)
        self.step_bias = nn.Parameter(torch.zeros(self._heads))

    def forward(self, values: Tensor, steps: Tensor, into: Tensor, out: Tensor) -> Tensor:
        length = values.shape[1]
        chunk = min(self._chunk, length)
        steps = F.softplus(steps + self.step_bias)
        heads = values.unflatten(-1, (self._heads, -1))
        decays, inputs = (
            self._by_chunks(x, chunk)
            for x in (steps * -torch.exp(self.decay), heads * steps[..., None])
        )
        into, out = (
            self._by_chunks(x.unflatten(-1, (self._groups, -1)), chunk) for x in (into, out)
        )
        passed = decays.cumsum(-1)
        made = self._within(passed, inputs, into, out) + self._between(passed, inputs, into, out)
        made = made.transpose(2, 3).flatten(1, 2)[:, :length]
        return (made + heads * self.direct[:, None]).flatten(-2)

    def _by_chunks(self, x: Tensor, chunk: int) -> Tensor:
        """(batch, positions, heads, ...) as (batch, chunks, heads, positions, ...)."""
        missing = -x.shape[1] % chunk
        padded = F.pad(x, (0, 0) * (x.dim() - 2) + (0, missing))
        return padded.unflatten(1, (-1, chunk)).transpose(2, 3)

    def _of_heads(self, x: Tensor) -> Tensor:
        """Repeat the values that a group of heads shares for each head."""
        return x.repeat_interleave(self._heads // self._groups, dim=2)

    def _within(self, passed: Tensor, inputs: Tensor, into: Tensor, out: Tensor) -> Tensor:
        later = passed[..., :, None] - passed[..., None, :]
        seen = torch.ones(later.shape[-2:], dtype=torch.bool, device=later.device).tril()
        kept = later.masked_fill(~seen, -torch.inf).exp()
        return (self._of_heads(out @ into.transpose(-2, -1)) * kept) @ inputs

    def _between(self, passed: Tensor, inputs: Tensor, into: Tensor, out: Tensor) -> Tensor:
        left = (passed[..., -1:] - passed).exp()
        added = (self._of_heads(into) * left[..., None]).transpose(-2, -1) @ inputs
        whole = passed[..., -1].exp()[..., None, None]
        state, before = torch.zeros_like(added[:, 0]), []
        for chunk in range(added.shape[1]):
            before.append(state)
            state = whole[:, chunk] * state + added[:, chunk]
        read = self._of_heads(out) @ torch.stack(before, dim=1)
        return read * passed.exp()[..., None]
