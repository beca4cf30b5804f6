"""The DFlash drafter: K tokens in one pass from the target's hidden states, as vLLM 0.29.0 serves it.

What the engine does, and this module repeats (read in vllm/model_executor/models/qwen3_dflash.py and
vllm/v1/spec_decode/dflash.py of 0.29.0): the outputs of the target's layers `TARGET_LAYERS` are joined, projected by
`fc` and normed; each draft layer makes keys and values of them (no input norm), one for each context position. The
queries are the last sampled token at position P and K masks at P+1..P+K; every query sees the context 0..P-1 and (if
not causal) every query; mask j answers for position P+j. Embedding and head are the target's own.

Shape letters: B rows, T tokens, A anchors a row, Q = K+1 queries an anchor, H hidden, V vocabulary.
"""

# ruff: noqa: N803 - tensors carry their shape in their names (style, rule 16)

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from testbed.batches import Batch
from testbed.layers import Layer, Norm, Shape, initialise, rotary
from testbed.target import Target

K = 5
TARGET_LAYERS = (0, 1, 2)
POSITION_DECAY = 0.8


@dataclass(frozen=True)
class Kind:
    """How a drafter attends: None is full attention; a number is a sliding window of that many tokens."""

    windows: tuple[int | None, ...] = (None, None)
    causal: bool = False


class Drafter(nn.Module):
    """Two layers over fused hidden states; parameter names are those of a DFlash checkpoint."""

    def __init__(self, shape: Shape, kind: Kind, seed: int) -> None:
        super().__init__()
        self.shape, self.kind = shape, kind
        self.fc = nn.Linear(len(TARGET_LAYERS) * shape.hidden, shape.hidden, bias=False)
        self.hidden_norm = Norm(shape.hidden, shape.eps)
        self.layers = nn.ModuleList(Layer(shape) for _ in kind.windows)
        self.norm = Norm(shape.hidden, shape.eps)
        initialise(self, torch.Generator().manual_seed(seed))

    def forward(
        self, states_BTH: torch.Tensor, queries_BAQH: torch.Tensor, anchors_BA: torch.Tensor, starve: int = 0
    ) -> torch.Tensor:
        """Draft states [B, A, K, H]. `starve` zeroes the keys and values of that many first positions."""
        context = self.hidden_norm(self.fc(states_BTH))
        at_context = torch.arange(context.shape[1])[None]
        at_query = (anchors_BA[..., None] + torch.arange(K + 1)).flatten(1)
        context_turn, query_turn = rotary(at_context, self.shape), rotary(at_query, self.shape)
        x = queries_BAQH.flatten(1, 2)
        for layer, window in zip(self.layers, self.kind.windows, strict=True):
            mask = visible(anchors_BA, context.shape[1], window, self.kind.causal)
            fed = [_starved(part, starve) for part in layer.self_attn.keys_values(context, *context_turn)]
            x = _layer(layer, x, fed, query_turn, mask)
        return self.norm(x).unflatten(1, (-1, K + 1))[:, :, 1:]


def _starved(part: torch.Tensor, n: int) -> torch.Tensor:
    return torch.cat([torch.zeros_like(part[:, :, :n]), part[:, :, n:]], dim=2) if n else part


def _layer(
    layer: Layer, x: torch.Tensor, fed: list[torch.Tensor], turned: tuple[torch.Tensor, ...], mask: torch.Tensor
) -> torch.Tensor:
    """One draft layer: the queries attend to the fed context and to each other."""
    attention = layer.self_attn
    normed = layer.input_layernorm(x)
    own = attention.keys_values(normed, *turned)
    keys, values = (torch.cat([context, mine], dim=2) for context, mine in zip(fed, own, strict=True))
    x = x + attention.attend(attention.queries(normed, *turned), keys, values, mask)
    return x + layer.mlp(layer.post_attention_layernorm(x))


def visible(anchors_BA: torch.Tensor, n_context: int, window: int | None, causal: bool) -> torch.Tensor:
    """What each query may see, [B, 1, A*Q, T + A*Q]."""
    n_rows, n_anchors = anchors_BA.shape
    at_query = (anchors_BA[..., None] + torch.arange(K + 1)).flatten(1)
    at_context = torch.arange(n_context).expand(n_rows, -1)
    block = torch.arange(n_anchors).repeat_interleave(K + 1)
    context = at_context[:, None] < anchors_BA.repeat_interleave(K + 1, dim=1)[..., None]
    own = (block[:, None] == block[None]).expand(n_rows, -1, -1)
    seen = torch.cat([context, own], dim=2)
    distance = at_query[..., None] - torch.cat([at_context, at_query], dim=1)[:, None]
    if causal:
        seen = seen & (distance >= 0)
    if window is not None:
        seen = seen & (distance < window)
    return seen[:, None]


def drafts(
    drafter: Drafter,
    target: Target,
    states: torch.Tensor,
    ids_BT: torch.Tensor,
    anchors_BA: torch.Tensor,
    mask_id: int,
    starve: int = 0,
) -> torch.Tensor:
    """Scores [B, A, K, V] of the tokens after each anchor (the anchor is the last token that is known)."""
    tokens = torch.full((*anchors_BA.shape, K + 1), mask_id)
    tokens[..., 0] = ids_BT.gather(1, anchors_BA)
    hidden = drafter(states, target.embed_tokens(tokens), anchors_BA, starve)
    return target.lm_head(hidden)


@dataclass(frozen=True)
class Page:
    """What the target makes of one batch of texts: states [B, T, 3H], ids, learn and greedy choice [B, T]."""

    kind: str
    states: torch.Tensor
    ids: torch.Tensor
    learn: torch.Tensor
    greedy: torch.Tensor


@torch.no_grad()
def read(target: Target, batch: Batch) -> Page:
    """Run the target once; many lessons are drawn from a page."""
    hidden = target.hidden_states(batch.ids)
    greedy = target.logits(hidden[-1]).argmax(-1)
    states = torch.cat([hidden[i] for i in TARGET_LAYERS], dim=-1)
    return Page(batch.kind, states, batch.ids, batch.learn, greedy)


@dataclass(frozen=True)
class Lesson:
    """Anchors [B, A] on a page, and for each the labels and their weights [B, A, K]."""

    page: Page
    anchors: torch.Tensor
    labels: torch.Tensor
    weights: torch.Tensor


def lesson(page: Page, n_anchors: int, generator: torch.Generator) -> Lesson:
    """Anchors where the target is to write, and the target's own greedy choice as the label.

    A label counts only as long as the text before it is what the target itself would have written: further on the
    target would be elsewhere by then.
    """
    may_anchor = page.learn[:, : -K - 1].float() + 1e-9
    n = min(n_anchors, may_anchor.shape[1])
    anchors = torch.multinomial(may_anchor, n, generator=generator).sort(dim=1).values
    after = anchors[..., None] + torch.arange(1, K + 1)
    labels = _at(page.greedy, after - 1)
    agreed = (_at(page.ids, after) == labels).float()
    before = torch.cat([torch.ones_like(agreed[..., :1]), agreed[..., :-1]], dim=-1).cumprod(-1)
    learnt = _at(page.learn, after) & _at(page.learn, anchors[..., None])
    return Lesson(page, anchors, labels, before * learnt * POSITION_DECAY ** torch.arange(K))


def _at(values_BT: torch.Tensor, where_BAK: torch.Tensor) -> torch.Tensor:
    return values_BT.gather(1, where_BAK.flatten(1)).view_as(where_BAK)


def loss_of(drafter: Drafter, target: Target, given: Lesson, mask_id: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Weighted cross entropy, and the share of first positions that were right."""
    page = given.page
    scores = drafts(drafter, target, page.states, page.ids, given.anchors, mask_id)
    losses = functional.cross_entropy(scores.flatten(0, 2), given.labels.flatten(), reduction="none")
    hit = (scores[:, :, 0].argmax(-1) == given.labels[..., 0]) * (given.weights[..., 0] > 0)
    right = hit.sum() / (given.weights[..., 0] > 0).sum()
    return (losses * given.weights.flatten()).sum() / given.weights.sum().clamp(min=1), right
