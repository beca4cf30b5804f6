"""The models in plain torch: what primed heads do, what a drafter may see (engine environment)."""

# ruff: noqa: E402 - what needs the engine environment is imported after the skip

import pytest

torch = pytest.importorskip("torch")

from testbed import drafter, variants
from testbed.layers import Shape
from testbed.target import Target


def test_an_untrained_target_already_continues_a_text_that_repeats():
    once = torch.randint(4, 1024, (8, 30), generator=torch.Generator().manual_seed(0))
    target = Target(Shape(), seed=0)
    with torch.no_grad():
        greedy = target.logits(target.hidden_states(torch.cat([once, once], dim=1))[-1]).argmax(-1)
    copied = greedy[:, 32:-1] == once[:, 3:]
    assert copied.float().mean() > 0.8


def test_the_target_never_sees_a_later_token():
    target, ids = Target(Shape(), seed=0), torch.arange(4, 24)[None]
    changed = ids.clone()
    changed[0, 15] = 900
    with torch.no_grad():
        before, after = (target.hidden_states(x)[-1][0, :15] for x in (ids, changed))
    assert torch.equal(before, after)


@pytest.mark.parametrize(
    ("window", "causal", "seen"),
    [(None, False, 10 + 6), (None, True, 10 + 1), (4, True, 3 + 1), (4, False, 3 + 6)],
    ids=["full", "causal", "sliding", "sliding, both ways"],
)
def test_the_last_token_sees_its_context_and_its_own_block(window, causal, seen):
    mask = drafter.visible(torch.tensor([[10, 14]]), n_context=20, window=window, causal=causal)
    assert int(mask[0, 0, 0].sum()) == seen


def test_a_draft_block_does_not_see_another():
    mask = drafter.visible(torch.tensor([[10, 14]]), n_context=20, window=None, causal=False)
    assert not mask[0, 0, :6, 20 + 6 :].any()


def test_a_label_counts_only_while_the_text_is_the_targets_own():
    ids = torch.arange(20)[None]
    greedy = torch.arange(1, 21)[None]
    greedy[0, 6] = 99
    page = drafter.Page("any", torch.zeros(1, 20, 3), ids, torch.ones(1, 20, dtype=torch.bool), greedy)
    lesson = drafter.lesson(page, n_anchors=14, generator=torch.Generator().manual_seed(0))
    counted = (lesson.weights[lesson.anchors == 4] > 0).tolist()
    assert counted == [[True, True, True, False, False]]


def test_the_built_drafter_repeats_the_last_token():
    shape, mask_id = Shape(), 3
    weights = variants.repeat_weights(shape, mask_id)
    built = drafter.Drafter(shape, variants.REPEAT, seed=0)
    built.load_state_dict({name: w for name, w in weights.items() if "embed" not in name and "lm_head" not in name})
    tokens = torch.full((1, 20, drafter.K + 1), mask_id)
    tokens[0, :, 0] = torch.arange(50, 1000, 48)[:20]
    states, anchors = torch.randn(1, 600, 384), torch.arange(20)[None] * 25 + 3
    with torch.no_grad():
        hidden = built(states, weights["embed_tokens.weight"][tokens], anchors)
    drafted = (hidden @ weights["lm_head.weight"].T).argmax(-1)
    assert torch.equal(drafted, tokens[..., :1].expand_as(drafted))
