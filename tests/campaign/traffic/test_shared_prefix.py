"""Twin of campaign.traffic.shared_prefix: what is sent in which order, and what is counted of it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from campaign.errors import EngineFailedError
from campaign.prompting.checks import Prompt
from campaign.traffic import shared_prefix
from campaign.traffic.client import Client
from campaign.traffic.shared_prefix import Passes, ask_cold_and_warm, empty_the_cache, shared_tokens
from tests.fakes.streams import Drafting, Piece, Reply, serving

PROMPTS = tuple(Prompt(f"p{i}", "prefix", None, f"글 {i}", 8) for i in range(2))


@pytest.mark.parametrize("rounds", [1, 2])
def test_every_cold_request_has_its_own_reset_and_no_warm_one_has_any(rounds: int) -> None:
    engine, asked = Drafting(), []

    def answer(body: dict[str, Any]) -> Reply | Iterator[Piece]:
        if not body:
            asked.append("reset")
            return Reply.of()
        if not body["stream"]:
            ids = [1, 2, 3, 40 + int(body["prompt"][-1])]
            return Reply.of(json.dumps({"choices": [{"token_ids": [5], "prompt_token_ids": ids}]}).encode())
        asked.append(body["prompt"][-1])
        return engine.answer(body)

    with serving(answer, {"/metrics": engine.metrics}) as server:
        facts, answers = ask_cold_and_warm(Client(server.url, "m"), PROMPTS, Passes(rounds), 10.0)
    cold, fill, warm = ["reset", "0", "reset", "1"], ["reset", "0", "1"], ["0", "1"] * rounds
    assert asked == [*cold, *fill, *warm]
    assert facts.shared_tokens == 3
    assert (facts.cold.rounds, facts.warm.rounds) == (1, rounds)
    assert (facts.warm.queries, facts.warm.hits) == (None, None)  # this engine counts none, which is not 0
    assert {name: counts.drafts > 0 for name, counts in facts.warm.counts.items()} == {"p0": True, "p1": True}
    assert facts.warm.prompt_tokens == 12 * 2 * rounds
    assert [(a.prompt_set, a.prompt_id) for a in answers] == [
        ("prefix_cold", "p0"), ("prefix_cold", "p1"), ("prefix_warm", "p0"), ("prefix_warm", "p1"),
    ]  # fmt: skip


def test_while_the_cache_is_filled_a_long_request_is_under_way_beside_each_prompt_and_at_no_other_time() -> None:
    engine, asked = Drafting(), []

    def answer(body: dict[str, Any]) -> Reply | Iterator[Piece]:
        if not body:
            return Reply.of()
        if body["stream"]:
            asked.append(body["prompt"][-1])
            return engine.answer(body)
        if isinstance(body["prompt"], list):
            asked.append((len(body["prompt"]), body["prompt"][:3], body["max_tokens"], body["ignore_eos"]))
        ids = [1, 2, 3, 40]
        return Reply.of(json.dumps({"choices": [{"token_ids": [5], "prompt_token_ids": ids}]}).encode())

    with serving(answer, {"/metrics": engine.metrics}) as server:
        ask_cold_and_warm(Client(server.url, "m"), PROMPTS, Passes(beside_tokens=2043), 10.0)
    long = (2043, [40, 3, 2], 5, True)
    assert asked[:2] + asked[-2:] == ["0", "1", "0", "1"]
    assert [asked[2:4], asked[4:6]] == [[long, "0"], [long, "1"]]


@pytest.mark.parametrize(
    ("answers", "raises"),
    [(["{}"], False), ([""], False), (['{"success": true}'], False),
     (['{"success": false}', '{"success": true}'], False), (['{"success": false}'], True)],
    ids=["says nothing", "empty", "done", "done a step later", "never done"],
)  # fmt: skip
def test_a_reset_counts_only_where_the_engine_does_not_say_that_it_was_not_done(answers, raises, monkeypatch):
    monkeypatch.setattr(shared_prefix, "RESET_PAUSE_S", 0)
    left = list(answers)

    def answer(_: dict[str, Any]) -> Reply:
        return Reply.of((left.pop(0) if len(left) > 1 else left[0]).encode())

    with serving(answer, {}) as server:
        client = Client(server.url, "m")
        if raises:
            with pytest.raises(EngineFailedError, match="was not emptied, so no pass is cold"):
                empty_the_cache(client, 10.0)
        else:
            empty_the_cache(client, 10.0)


TOKENS, TAILS = st.lists(st.integers(0, 5), max_size=12), st.lists(st.integers(6, 9), min_size=1, max_size=6)


@given(TOKENS, st.lists(TAILS, min_size=2, max_size=6))
def test_a_prefix_that_all_share_is_at_least_as_long_as_it_is(prefix, tails):
    assert shared_tokens([[*prefix, *tail] for tail in tails]) >= len(prefix)


def test_the_shortest_of_what_each_shares_with_any_other_counts():
    assert shared_tokens([[1, 2, 3, 4], [1, 2, 3, 5], [7, 8, 9], [7, 8, 1]]) == 2
    assert shared_tokens([[1, 2, 3], [1, 2, 4], [5]]) == 0


def test_a_prompt_alone_shares_nothing():
    assert shared_tokens([[1, 2, 3]]) == 0
    assert shared_tokens([]) == 0
