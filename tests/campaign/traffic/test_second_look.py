"""Twin of campaign.traffic.second_look, against a real server over HTTP that answers as it is told."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from campaign.evidence import Again
from campaign.gates.footing import has_prefix_cache
from campaign.prompting.checks import Check, Prompt
from campaign.traffic.client import Client
from campaign.traffic.second_look import MOST_PARTED, Questioner
from tests.fakes.evidence import answer, boot, right, wrong
from tests.fakes.streams import DONE, Reply, chunk, role, serving, usage

CHAT = Prompt("k1", "korean", ({"role": "user", "content": "하늘은?"},), None, 64, Check("korean"))
PLAIN = Prompt("d1", "decode", None, "Log of", 64)
SETS = {"korean": (CHAT,), "decode": (PLAIN,)}
BROKEN = "1 broken character, the first U+FFFD in '생각에 �겼다'"
NAN = "suspected NaN: 100 times '!' from character 3"


@contextmanager
def asker(whole: Callable[[dict[str, Any]], dict[str, Any]]) -> Iterator[tuple[Questioner, list[Any]]]:
    """Who asks a server that answers in one piece with this choice; and what it was asked."""
    with serving(lambda body: Reply.of(json.dumps({"choices": [whole(body)]}).encode())) as server:
        yield Questioner(Client(server.url, "nonce"), 5.0, SETS), server.asked


def said(text: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A chat's choice with this text."""
    return lambda _: {"message": {"role": "assistant", "content": text}}


@pytest.mark.case("H6")
@pytest.mark.parametrize(
    ("text", "told"),
    [("!!!!!!!!!!!!!!!!", "is bad too ('!!!!!!!!!!!!!!!!'): the engine stays bad"), ("Hi.", "does not stay bad")],
    ids=["still bad", "well again"],
)
def test_after_a_suspected_nan_a_short_prompt_shows_whether_the_engine_stays_bad(text: str, told: str) -> None:
    bad = wrong("k1", NAN, prompt_set="korean", text="You" + 100 * "!")
    with asker(said(text)) as (found, asked):
        (examined,) = found.examined([bad])
    assert examined.why.startswith(f"{NAN}; a short prompt asked after it")
    assert examined.why.endswith(told)
    assert (asked[0][1]["max_tokens"], asked[0][1]["stream"]) == (16, False)


@pytest.mark.case("H1")
@pytest.mark.parametrize(
    ("whole", "told"),
    [
        ("생각에 잠겼다", "streamed 1 broken character, in one piece 0: the server's streaming breaks them"),
        ("생각에 �겼다", "streamed 1 broken character, in one piece 1: not by streaming"),
    ],
    ids=["its streaming", "not its streaming"],
)
def test_a_broken_character_is_the_servers_and_is_asked_for_in_one_piece(whole: str, told: str) -> None:
    bad = wrong("k1", BROKEN, prompt_set="korean", text="생각에 �겼다")
    with asker(said(whole)) as (found, _):
        assert found.examined([bad])[0].why == f"{BROKEN}; {told}"


def test_answers_without_damage_are_not_asked_about() -> None:
    with asker(said("")) as (found, asked):
        good = (right("k1", prompt_set="korean"), wrong("k1", "wanted '하늘', got '바다' (stop)", prompt_set="korean"))
        assert found.examined(good) == good
    assert asked == []


# log probabilities where answers part


def likeliest(body: dict[str, Any]) -> dict[str, Any]:
    """An answer in one piece with the log probabilities that the engine gives, tokens as ids."""
    assert body["return_tokens_as_token_ids"]
    tops = [{"token_id:7": -0.1}, {"token_id:9": -0.2, "token_id:8": -0.3}]
    ids = {"token_ids": [7, 9]}
    if "messages" not in body:
        return ids | {"text": "ab", "logprobs": {"top_logprobs": tops}}
    rows = [[{"token": token, "logprob": value} for token, value in top.items()] for top in tops]
    return ids | {"logprobs": {"content": [row[0] | {"top_logprobs": row} for row in rows]}}


def base_boot(**fields: Any) -> Any:
    """A first base boot that answered both prompts with tokens 7, 8."""
    return boot(1, "A", answers=(told("k1", "korean", 7, 8), told("d1", "decode", 7, 8)), **fields)


def told(name: str, prompt_set: str, *ids: int) -> Any:
    """An answer of these tokens."""
    return answer(name, str(ids), prompt_set=prompt_set, token_ids=ids)


def test_a_candidate_is_asked_again_as_far_as_the_token_at_which_it_parts_from_base() -> None:
    with asker(likeliest) as (found, asked):
        again = found.parted((told("k1", "korean", 7, 9), told("d1", "decode", 7, 9, 9)), [base_boot()], "B")
    seen = {"9": -0.2, "8": -0.3}
    assert again == (Again("k1", "korean", 1, (7, 9), seen), Again("d1", "decode", 1, (7, 9), seen))
    chat, plain = asked[0][1], asked[1][1]
    assert (chat["max_tokens"], chat["logprobs"], chat["top_logprobs"], chat["ignore_eos"]) == (2, True, 5, False)
    assert (plain["max_tokens"], plain["logprobs"], plain["ignore_eos"]) == (2, 5, True)


def test_base_is_asked_in_its_next_boot_and_nobody_twice() -> None:
    differed = boot(2, "B", answers=(told("k1", "korean", 7, 9),))
    same = (told("k1", "korean", 7, 8),)
    with asker(likeliest) as (found, asked):
        assert [a.prompt_id for a in found.parted(same, [base_boot(), differed], "A")] == ["k1"]
        known = boot(3, "A", again=(Again("k1", "korean", 1, (7, 8)),))
        assert found.parted(same, [base_boot(), differed, known], "A") == ()
        assert found.parted(same, [base_boot()], "A") == ()  # nothing differs
    assert len(asked) == 1


def test_an_engine_that_refuses_log_probabilities_leaves_the_difference_unclassified() -> None:
    with serving(Reply.of(b'{"error": "no logprobs here"}', status=400)) as server:
        found = Questioner(Client(server.url, "nonce"), 5.0, SETS)
        again = found.parted((told("k1", "korean", 7, 9),), [base_boot()], "B")
    assert again == (Again("k1", "korean", 1, ()),)


@pytest.mark.parametrize(
    "logprobs",
    [[1], {"content": [1, 2]}, {"content": [{}, {"token": 7, "logprob": None}]}, {"top_logprobs": [{}, [3]]}],
    ids=["a list", "rows of numbers", "no number", "tops of lists"],
)
def test_log_probabilities_in_another_form_leave_it_unclassified_too(logprobs: object) -> None:
    with asker(lambda _: {"token_ids": [7, 9], "logprobs": logprobs}) as (found, _):
        again = found.parted((told("k1", "korean", 7, 9),), [base_boot()], "B")
    assert again == (Again("k1", "korean", 1, (7, 9)),)


def test_a_boot_is_asked_about_a_bounded_number_of_prompts() -> None:
    prompts = tuple(Prompt(f"q{i}", "quality", None, "x", 8) for i in range(20))
    ours, theirs = ([told(p.id, "quality", 7, last) for p in prompts] for last in (8, 9))
    with serving(lambda body: Reply.of(json.dumps({"choices": [likeliest(body)]}).encode())) as server:
        found = Questioner(Client(server.url, "nonce"), 5.0, {"quality": prompts})
        assert len(found.parted(theirs, [boot(1, "A", answers=tuple(ours))], "B")) == MOST_PARTED


def test_a_later_turn_of_the_window_is_asked_with_the_prompt_of_its_first() -> None:
    reference = boot(1, "A", answers=(told("d1.turn2", "decode", 7, 8),))
    with asker(likeliest) as (found, asked):
        assert [a.prompt_id for a in found.parted((told("d1.turn2", "decode", 7, 9),), [reference], "B")] == [
            "d1.turn2"
        ]
    assert asked[0][1]["prompt"] == "Log of"


# H13: from a warm prefix cache


@pytest.mark.case("H13")
@pytest.mark.parametrize(
    ("warm", "ok", "why"),
    [
        ("하늘은 파랗다", True, ""),
        ("하늘은 푸르다", True, "right, but from a warm prefix cache it is answered in another way"),
        ("하늘은 藍色", False, "from a warm prefix cache: 2 Han or kana"),
    ],
    ids=["alike", "otherwise", "worse"],
)
def test_an_answer_from_a_warm_cache_counts_when_it_is_worse(warm: str, ok: bool, why: str) -> None:
    cold = right("k1", text="하늘은 파랗다", prompt_set="korean", token_ids=tuple(map(ord, "하늘은 파랗다")))
    pieces = [role(), chunk(warm, list(map(ord, warm)), "stop"), usage(len(warm)), DONE]
    with serving(Reply.of(*pieces)) as server:
        (found,) = Questioner(Client(server.url, "nonce"), 5.0, SETS).warmed([cold])
    assert found.ok is ok
    assert found.why.startswith(why)
    assert bool(found.why) is bool(why)


def test_a_warm_answer_that_cannot_be_judged_is_worse_than_a_right_one() -> None:
    cold = right("k1", text="하늘", prompt_set="korean", token_ids=(1, 2))
    with serving(Reply.of(role(), chunk("\n\n", [3, 3], "length"), usage(2), DONE)) as server:
        (found,) = Questioner(Client(server.url, "nonce"), 5.0, SETS).warmed([cold])
    assert (found.ok, found.why.startswith("from a warm prefix cache: budget")) == (None, True)


def test_an_engine_has_a_prefix_cache_when_it_resolved_one() -> None:
    assert has_prefix_cache({"resolved": '{"prefix_caching": true}'})
    assert not has_prefix_cache({"resolved": '{"prefix_caching": false}'})
    assert not has_prefix_cache({})
