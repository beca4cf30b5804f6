"""Drafters beside the trained one: two that re-use its weights under sliding windows, and one built by hand."""

import torch

from testbed.drafter import TARGET_LAYERS, Kind
from testbed.layers import Shape

WINDOW = 128  # tokens
SLIDING = Kind(windows=(WINDOW, WINDOW), causal=True)
MIXED = Kind(windows=(None, WINDOW), causal=False)
REPEAT = Kind(windows=(None,), causal=False)
CODE_DIMS = 64  # both key/value heads together
ONE, BONUS = CODE_DIMS, CODE_DIMS + 1
FLAG = 4.0
SHARPNESS = 4.0


def repeat_weights(shape: Shape, mask_id: int) -> dict[str, torch.Tensor]:
    """A one-layer drafter that answers every mask with the last sampled token.

    Every token's embedding is a code of +-1 in 64 dimensions and a flag that tells it from the mask. Attention compares
    a constant query with that flag (in the rotary pair that turns slowest). `fc` is zero, so the context has neither
    keys nor values: the masks see nothing but the last token. What they bring back is its code, and the head is the
    table of codes.
    """
    codes = torch.randint(0, 2, (shape.vocab, CODE_DIMS), generator=torch.Generator().manual_seed(0)) * 2.0 - 1.0
    embedding = torch.zeros(shape.vocab, shape.hidden)
    embedding[:, :CODE_DIMS] = codes
    embedding[:, ONE], embedding[:, BONUS] = FLAG, FLAG
    embedding[mask_id, :CODE_DIMS], embedding[mask_id, BONUS] = 0.0, -FLAG
    head = torch.zeros_like(embedding)
    head[:, :CODE_DIMS] = codes
    return {"embed_tokens.weight": embedding, "lm_head.weight": head} | _one_layer(shape) | _joints(shape)


def _joints(shape: Shape) -> dict[str, torch.Tensor]:
    return {
        "fc.weight": torch.zeros(shape.hidden, len(TARGET_LAYERS) * shape.hidden),
        "hidden_norm.weight": torch.ones(shape.hidden),
        "norm.weight": torch.ones(shape.hidden),
    }


def _one_layer(shape: Shape) -> dict[str, torch.Tensor]:
    slowest = shape.head_dim // 2 - 1
    q = torch.zeros(shape.heads * shape.head_dim, shape.hidden)
    k = torch.zeros(shape.kv_heads * shape.head_dim, shape.hidden)
    q[slowest :: shape.head_dim, ONE] = 1.0
    k[slowest :: shape.head_dim, BONUS] = 1.0
    v = torch.eye(shape.kv_heads * shape.head_dim, shape.hidden)
    heads = torch.eye(shape.heads).repeat_interleave(shape.head_dim, dim=0).argmax(1)
    o = torch.zeros(shape.hidden, shape.heads * shape.head_dim)
    for column, head in enumerate(heads.tolist()):
        group = head // (shape.heads // shape.kv_heads)
        o[group * shape.head_dim + column % shape.head_dim, column] = 1.0
    mlp = torch.zeros(shape.intermediate, shape.hidden)
    sharp = torch.full((shape.head_dim,), SHARPNESS)
    plain = torch.ones(shape.hidden)
    return {
        f"layers.0.{name}.weight": tensor
        for name, tensor in {
            "self_attn.q_proj": q,
            "self_attn.k_proj": k,
            "self_attn.v_proj": v,
            "self_attn.o_proj": o,
            "self_attn.q_norm": sharp,
            "self_attn.k_norm": sharp.clone(),
            "mlp.gate_proj": mlp,
            "mlp.up_proj": mlp.clone(),
            "mlp.down_proj": mlp.T,
            "input_layernorm": plain,
            "post_attention_layernorm": plain.clone(),
        }.items()
    }
