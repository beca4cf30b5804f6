"""Twin of campaign.inspection.streams and .requests: what is no step, what was asked for, times that are none."""

import json

import pytest

from campaign.errors import ConfigError
from campaign.inspection import look_into_all


@pytest.fixture
def look(tmp_path):
    """look(request, ...): the finding of one file with these requests, a line each."""

    def run(*requests):
        file = tmp_path / "streams.jsonl"
        file.write_text("\n".join(json.dumps(request) for request in requests))
        return look_into_all([file])[0]

    return run


def stream(*tokens, **more):
    return {"chunks": [[10 * place, count] for place, count in enumerate(tokens)], **more}


KEPT = {
    "prompt_id": "p", "text": "x", "token_ids": list(range(310)), "finish_reason": "stop", "prompt_tokens": 5,
    "sent_ns": 0, "chunk_ns": [n * 10**6 for n in range(310)], "chunk_tokens": [1] * 310, "completion_tokens": 310,
    "asked": '{"max_tokens": 2048, "ignore_eos": true}', "reasoning_tokens": 0,
}  # fmt: skip
MERGED = {
    "fewer than steps": stream(*[9] * 24, *[10] * 16, draft_tokens=5, sent_ms=-100),
    "one holds two": stream(1, *[3] * 20, 7, draft_tokens=5),
    "no K known": stream(*[32] * 12, sent_ms=-5500),
    "hidden ones too": stream(*[1] * 100, draft_tokens=3, usage={"completion_tokens": 500}),
}


@pytest.mark.case("D4")
@pytest.mark.parametrize("name", MERGED)
def test_chunks_that_cannot_be_steps_give_no_rate(look, name):
    found = look(MERGED[name])
    assert found.code == 5
    assert "chunks hold several steps" in "\n".join(found.lines)
    assert not found.told_numbers
    assert not [line for line in found.lines if "step/s  " in line or "tok/s  " in line]


def test_chunks_that_are_full_steps_give_a_rate(look):
    found = look(stream(1, *[6] * 20, draft_tokens=5))
    assert found.code == 0
    assert found.told_numbers["step_per_s"] == pytest.approx(100)


@pytest.mark.case("D6")
def test_of_a_boots_samples_it_is_read_what_was_asked_for(look):
    assert "early stop: p gave 310 tokens of 2048" in "\n".join(look(KEPT).lines)
    for asked in ("", '{"max_tokens": 2048}', '{"max_tokens": 310, "ignore_eos": true}'):
        assert look(KEPT | {"asked": asked}).code == 0


@pytest.mark.case("D3")
@pytest.mark.parametrize(
    "request_",
    [
        KEPT | {"asked": "", "reasoning_tokens": 300},
        stream(*[1] * 310, usage={"completion_tokens": 310, "reasoning_tokens": 300}),
        stream(*[1] * 310, usage={"completion_tokens": 310, "completion_tokens_details": {"reasoning_tokens": 300}}),
    ],
    ids=["a boot's", "flat", "nested"],
)
def test_reasoning_is_told_wherever_it_is_counted(look, request_):
    assert "300 of 310 tokens are reasoning" in "\n".join(look(request_).lines)


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (stream(1, 1, sent_ms=100), "after its first chunk"),
        (KEPT | {"sent_ns": 1}, "before that of the chunk before"),
        ({"chunks": [[0, 1], [1e305, 1]]}, "no clock gives that"),
        ({"chunks": [[0, 1], [1, 10**400]]}, "wanted whole numbers"),
        (KEPT | {"asked": "{"}, "asked is no JSON"),
        (stream(1, 1, usage={"completion_tokens_details": 5}), "wanted a map"),
    ],
    ids=["sent later", "kept: sent later", "a huge time", "a huge count", "a body that is none", "details"],
)
def test_times_and_counts_that_nothing_measured_are_refused(look, request_, words):
    with pytest.raises(ConfigError, match=words):
        look(request_)


def test_a_request_that_took_no_time_is_no_speed_and_no_crash(look):
    found = look(stream(1), *[stream(1, 1, 1)] * 3)
    assert (found.code, found.told_numbers["warm_up_requests"]) == (0, 0)
