"""Give an untrained target the beginnings of copying; training is free to undo it.

A model of a million parameters spends most of a short training on finding out how to copy from its context. The two
steps of that (Olsson et al. 2022, "In-context learning and induction heads") are built in here before training starts:

1. heads that look 1, 2, 3 and 4 tokens back. One embedding dimension is constant, so queries and keys can be constant
   too, and rotary positions make the score a function of the distance alone;
2. a head in layer 2 whose query is the present token and whose key is what head 1 brought: it finds the place after an
   earlier occurrence of the present token, and brings what stands there, in the subspace where the output head looks.
"""

import torch
from torch import nn

from testbed.layers import Attention, Shape

LOOK_BACK = ((1, 2), (3, 4))  # by layer, then by key/value head, in tokens
COPY_LAYER = 2
EMBEDDING_STD, CONSTANT = 0.2, 2.0  # large enough that the untrained parts are noise beside them
BRING, COPY, READ = 0.6, 1.5, 1.0  # scales of the two carrying heads and of the output head
N_FAST, SLOW_FROM = 3, 8  # rotary pairs: those that tell neighbours apart, and those that hardly turn over 500 tokens
SHARPNESS = 2.5


@torch.no_grad()
def prime(model: nn.Module, seed: int) -> None:
    """Prime a `Target` in place."""
    shape, embedding = model.shape, model.embed_tokens.weight
    nn.init.normal_(embedding, std=EMBEDDING_STD, generator=torch.Generator().manual_seed(seed))
    embedding[:, 0] = CONSTANT
    for layer, offsets in zip(model.layers, LOOK_BACK, strict=False):
        for kv_head, offset in enumerate(offsets):
            _look_back(layer.self_attn, kv_head, offset)
    seen, brought, copied = _subspaces(shape, seed)
    _carry(model.layers[0].self_attn, seen, brought, BRING)
    _carry(model.layers[COPY_LAYER].self_attn, seen, copied, COPY)
    _match(model.layers[COPY_LAYER].self_attn, seen, brought)
    model.lm_head.weight += READ * embedding @ seen.T @ copied


def _subspaces(shape: Shape, seed: int) -> list[torch.Tensor]:
    """Three orthonormal sets of head_dim directions, each [D, H], none with a share in the constant dimension."""
    generator = torch.Generator().manual_seed(seed)
    basis, _ = torch.linalg.qr(torch.randn(shape.hidden - 1, 3 * shape.head_dim, generator=generator))
    padded = torch.cat([torch.zeros(1, basis.shape[1]), basis])
    return [part.T.contiguous() for part in padded.chunk(3, dim=1)]


def _look_back(attention: Attention, kv_head: int, offset: int) -> None:
    """Make the first query head of a group attend `offset` tokens back, by the fastest turning dimensions."""
    shape, fast = attention.shape, torch.arange(N_FAST)
    half = shape.head_dim // 2
    q_row = kv_head * (shape.heads // shape.kv_heads) * shape.head_dim
    k_row = kv_head * shape.head_dim
    angles = offset * shape.rope_theta ** (-2.0 * fast / shape.head_dim)
    attention.q_proj.weight[q_row + fast, 0] = 1.0
    attention.k_proj.weight[k_row + fast, 0] = angles.cos()
    attention.k_proj.weight[k_row + half + fast, 0] = angles.sin()
    _sharpen(attention, torch.cat([fast, half + fast]))


def _carry(attention: Attention, source: torch.Tensor, goal: torch.Tensor, scale: float) -> None:
    """Let head 0 bring what lies in one subspace at the place it attends to into another one here."""
    width = attention.shape.head_dim
    attention.v_proj.weight[:width] = source
    attention.o_proj.weight[:, :width] = scale * goal.T


def _match(attention: Attention, present: torch.Tensor, brought: torch.Tensor) -> None:
    """Let head 0 attend where `brought` there equals `present` here, by the slowest turning dimensions."""
    half = attention.shape.head_dim // 2
    slow = torch.cat([torch.arange(SLOW_FROM, half), half + torch.arange(SLOW_FROM, half)])
    attention.q_proj.weight[slow] = present[slow]
    attention.k_proj.weight[slow] = brought[slow]
    _sharpen(attention, slow)


def _sharpen(attention: Attention, dims: torch.Tensor) -> None:
    for norm in (attention.q_norm, attention.k_norm):
        norm.weight[dims] = SHARPNESS
