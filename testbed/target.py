"""The target: a Qwen3 of about one million parameters, and its training.

Shape letters as in `layers`; V is the vocabulary.
"""

# ruff: noqa: N803 - tensors carry their shape in their names (style, rule 16)

import torch
from torch import nn
from torch.nn import functional

from testbed.layers import Layer, Norm, Shape, initialise, rotary
from testbed.prime import prime


class Target(nn.Module):
    """Qwen3ForCausalLM, without a cache; parameter names follow `model.` + Qwen3's."""

    def __init__(self, shape: Shape, seed: int) -> None:
        super().__init__()
        self.shape = shape
        self.embed_tokens = nn.Embedding(shape.vocab, shape.hidden)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = Norm(shape.hidden, shape.eps)
        self.lm_head = nn.Linear(shape.hidden, shape.vocab, bias=False)
        initialise(self, torch.Generator().manual_seed(seed))
        prime(self, seed)

    def hidden_states(self, ids_BT: torch.Tensor) -> list[torch.Tensor]:
        """The residual stream after each layer, layers x [B, T, H]."""
        positions = torch.arange(ids_BT.shape[1])[None]
        cos, sin = rotary(positions, self.shape)
        x = self.embed_tokens(ids_BT)
        states = []
        for layer in self.layers:
            normed = layer.input_layernorm(x)
            attention = layer.self_attn
            x = x + attention.attend(attention.queries(normed, cos, sin), *attention.keys_values(normed, cos, sin))
            x = x + layer.mlp(layer.post_attention_layernorm(x))
            states.append(x)
        return states

    def logits(self, last_BTH: torch.Tensor) -> torch.Tensor:
        """Scores of the next token, [B, T, V]."""
        return self.lm_head(self.norm(last_BTH))


def loss_of(target: Target, ids_BT: torch.Tensor, weight_BT: torch.Tensor) -> torch.Tensor:
    """Weighted cross entropy; `weight_BT[:, t]` belongs to the token at t."""
    last = target.hidden_states(ids_BT)[-1][:, :-1]
    weight = weight_BT[:, 1:].flatten()
    kept = weight > 0
    logits = target.logits(last.flatten(0, 1)[kept]).float()
    losses = functional.cross_entropy(logits, ids_BT[:, 1:].flatten()[kept], reduction="none")
    return (losses * weight[kept]).sum() / weight.sum()
