"""The parts that target and drafter share: RMSNorm, rotary attention, SwiGLU (Qwen3's), in plain torch.

Shape letters: B rows, T tokens, H hidden, N heads, G key/value heads, D head dimension.
"""

# ruff: noqa: N803 - tensors carry their shape in their names (style, rule 16)

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional


@dataclass(frozen=True)
class Shape:
    """The sizes of a model."""

    vocab: int = 1024
    hidden: int = 128
    layers: int = 4
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 32
    intermediate: int = 384
    rope_theta: float = 1_000_000.0
    eps: float = 1e-6
    max_positions: int = 2048


class Norm(nn.Module):
    """RMSNorm over the last dimension."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.rms_norm(x.float(), (x.shape[-1],), self.weight, self.eps)


def rotary(positions_BT: torch.Tensor, shape: Shape) -> tuple[torch.Tensor, torch.Tensor]:
    """cos and sin, [B, 1, T, D]; the two halves of a head turn together (the layout of Qwen3)."""
    half = torch.arange(0, shape.head_dim, 2, dtype=torch.float32) / shape.head_dim
    angles = positions_BT[:, None, :, None].float() * (shape.rope_theta**-half)
    doubled = torch.cat([angles, angles], dim=-1)
    return doubled.cos(), doubled.sin()


def turn(x_BNTD: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotate queries or keys by their positions."""
    first, second = x_BNTD.chunk(2, dim=-1)
    return x_BNTD * cos + torch.cat([-second, first], dim=-1) * sin


class Attention(nn.Module):
    """Grouped attention with normed queries and keys; the parts are public because a drafter joins two sources."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.q_proj = nn.Linear(shape.hidden, shape.heads * shape.head_dim, bias=False)
        self.k_proj = nn.Linear(shape.hidden, shape.kv_heads * shape.head_dim, bias=False)
        self.v_proj = nn.Linear(shape.hidden, shape.kv_heads * shape.head_dim, bias=False)
        self.o_proj = nn.Linear(shape.heads * shape.head_dim, shape.hidden, bias=False)
        self.q_norm = Norm(shape.head_dim, shape.eps)
        self.k_norm = Norm(shape.head_dim, shape.eps)

    def queries(self, x_BTH: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        """[B, N, T, D], normed and turned."""
        return turn(self.q_norm(self._split(self.q_proj(x_BTH))), cos, sin)

    def keys_values(
        self, x_BTH: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Two of [B, G, T, D]; keys normed and turned."""
        return turn(self.k_norm(self._split(self.k_proj(x_BTH))), cos, sin), self._split(self.v_proj(x_BTH))

    def attend(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Attention and output projection, [B, T, H]; causal where no mask is given."""
        groups = self.shape.heads // self.shape.kv_heads
        k, v = k.repeat_interleave(groups, dim=1), v.repeat_interleave(groups, dim=1)
        q, k = q.to(v.dtype), k.to(v.dtype)
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None)
        return self.o_proj(mixed.transpose(1, 2).flatten(2))

    def _split(self, x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(-1, (-1, self.shape.head_dim)).transpose(1, 2)


class Mlp(nn.Module):
    """SwiGLU."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(shape.hidden, shape.intermediate, bias=False)
        self.up_proj = nn.Linear(shape.hidden, shape.intermediate, bias=False)
        self.down_proj = nn.Linear(shape.intermediate, shape.hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    """One pre-norm block; submodule names are those of Qwen3 checkpoints."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.self_attn = Attention(shape)
        self.mlp = Mlp(shape)
        self.input_layernorm = Norm(shape.hidden, shape.eps)
        self.post_attention_layernorm = Norm(shape.hidden, shape.eps)


def initialise(model: nn.Module, generator: torch.Generator, std: float = 0.02) -> None:
    """Small normal weights for every matrix."""
    for parameter in model.parameters():
        if parameter.ndim == 2:
            nn.init.normal_(parameter, std=std, generator=generator)
