"""The client against a real server over HTTP that sends exactly what a test says, byte by byte."""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from campaign.errors import EngineFailedError, InvalidError
from campaign.prompting.checks import Prompt, Sampling
from campaign.traffic.client import Ask, Client
from campaign.traffic.sample import Sample
from tests.fakes.streams import DONE, Reply, chunk, event, role, serving, usage

KOREAN = "습니다"
CHAT = Prompt("p1", "quality", ({"role": "user", "content": "안녕"},), None, 16)
PLAIN = Prompt("p2", "decode", None, "옛날 옛적에", 16)
ASK = Ask(max_tokens=16, ignore_eos=False, timeout_s=5.0)


@contextmanager
def client(*pieces: bytes | float, **reply: object) -> Iterator[Client]:
    """A client of a server that answers every prompt with these pieces."""
    with serving(Reply.of(*pieces, **reply)) as server:
        yield Client(server.url, "nonce")


def streamed(*pieces: bytes | float, ask: Ask = ASK, **reply: object) -> Sample:
    """What the client makes of one stream."""
    with client(*pieces, **reply) as found:
        return found.stream(CHAT, ask)


def test_tokens_texts_and_counts_of_a_stream_are_kept() -> None:
    found = streamed(role(), chunk("안", [7]), chunk("녕하", [8, 9]), chunk("", [2], "stop"), usage(4, prompt=12), DONE)
    assert (found.text, found.token_ids, found.finish_reason) == ("안녕하", (7, 8, 9, 2), "stop")
    assert (found.chunk_tokens, found.prompt_tokens, found.prompt_id) == ((1, 2, 1), 12, "p1")


def test_several_tokens_in_a_chunk_count_as_tokens_and_the_chunk_as_one() -> None:
    """D2: chunks of 1, 4, 1, 4 tokens."""
    pieces = [chunk("x", range(n)) for n in (1, 4, 1, 4)]
    found = streamed(role(), *pieces, usage(10), DONE)
    assert (found.chunk_tokens, len(found.token_ids), len(found.chunk_ns)) == ((1, 4, 1, 4), 10, 4)


def test_a_chunk_without_tokens_is_no_chunk_of_the_count() -> None:
    found = streamed(role(), chunk("", []), chunk("안", [7]), chunk("", [], "length"), usage(1), DONE)
    assert (found.chunk_tokens, found.finish_reason) == ((1,), "length")


@pytest.mark.case("D3")
@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_tokens_count_although_they_are_not_seen(field: str) -> None:
    """512 tokens, of which 480 are reasoning; a count of what is visible would say 32."""
    thinking = [event({"choices": [{"delta": {field: "생각"}, "token_ids": [1] * 48}]})] * 10
    found = streamed(role(), *thinking, chunk("답", [4] * 32, "stop"), usage(512), DONE)
    assert (found.text, found.reasoning, found.tokens, found.reasoning_tokens) == ("답", "생각" * 10, 512, 480)


@pytest.mark.case("D5")
@pytest.mark.parametrize(
    ("pieces", "said", "seen"),
    [([chunk(" " * 15, range(15), "stop")], 15, 15), ([chunk("", [1]), chunk("답", [2], "stop")], 4, 2)],
    ids=["fifteen spaces, which another tokenizer calls one token", "a parser that swallows two tokens"],
)
def test_the_servers_count_wins_and_what_the_stream_lacks_is_known(pieces, said: int, seen: int) -> None:
    found = streamed(role(), *pieces, usage(said), DONE)
    assert (found.tokens, len(found.token_ids)) == (said, seen)


@pytest.mark.case("D3")
def test_an_event_that_is_no_error_does_not_end_an_answer() -> None:
    named = b"event: message\n" + chunk("안", [7])
    assert streamed(role(), named, chunk("녕", [8], "stop"), usage(2), DONE).text == "안녕"


def test_the_completions_endpoint_is_read_alike() -> None:
    pieces = [chunk("그는 ", [5], chat=False), chunk("갔다", [6], "length", chat=False), usage(2), DONE]
    with client(*pieces) as found:
        assert found.stream(PLAIN, ASK).text == "그는 갔다"


# what is sent


def test_a_chat_prompt_is_sent_greedily_with_token_ids_and_usage_asked_for() -> None:
    with serving(Reply.of(chunk("a", [1]), usage(1), DONE)) as server:
        Client(server.url, "nonce").stream(CHAT, Ask(16, ignore_eos=True, timeout_s=5.0))
        path, body = server.asked[0]
    assert (path, body["messages"], body["model"]) == ("/v1/chat/completions", list(CHAT.messages or ()), "nonce")
    assert (body["temperature"], body["max_tokens"], body["ignore_eos"]) == (0, 16, True)
    assert (body["stream"], body["return_token_ids"], body["stream_options"]) == (True, True, {"include_usage": True})


def test_a_drawn_prompt_is_sent_as_it_says_and_a_chat_with_the_arguments_of_its_template() -> None:
    drawn = replace(CHAT, sampling=Sampling(0.8, 0.9, 7))
    with serving(lambda _: Reply.of(chunk("a", [1]), usage(1), DONE)) as server:
        told = Client(server.url, "nonce", chat_template={"enable_thinking": False})
        told.stream(drawn, ASK)
        told.stream(PLAIN, ASK)
        chat, plain = (body for _, body in server.asked)
    assert (chat["temperature"], chat["top_p"], chat["seed"]) == (0.8, 0.9, 7)
    assert chat["chat_template_kwargs"] == {"enable_thinking": False}
    assert (plain["temperature"], "chat_template_kwargs" in plain) == (0, False)


@pytest.mark.case("H14")
def test_a_prompt_is_known_by_the_hash_of_its_rendered_tokens_on_either_endpoint() -> None:
    chat = [event({"choices": [], "prompt_token_ids": ids}) for ids in ([5, 6], [5, 7], [5, 6])]
    found = [streamed(first, chunk("a", [1]), usage(1), DONE).prompt_hash for first in chat]
    assert found[0] == found[2] != found[1]
    plain = event({"choices": [{"index": 0, "text": "a", "token_ids": [1], "prompt_token_ids": [5, 6]}]})
    assert streamed(plain, usage(1), DONE).prompt_hash == found[0]
    assert streamed(chunk("a", [1]), usage(1), DONE).prompt_hash == ""


def test_a_plain_prompt_goes_to_the_completions_endpoint_with_its_korean_whole() -> None:
    with serving(Reply.of(chunk("a", [1], chat=False), usage(1), DONE)) as server:
        Client(server.url, "nonce").stream(PLAIN, ASK)
        path, body = server.asked[0]
    assert (path, body["prompt"], "messages" in body) == ("/v1/completions", "옛날 옛적에", False)


def test_an_engine_with_a_key_is_asked_with_it_everywhere() -> None:
    with serving(Reply.of(chunk("a", [1]), usage(1), DONE), {"/metrics": lambda: ""}) as server:
        keyed = Client(server.url, "nonce", {"Authorization": "Bearer k"})
        keyed.stream(CHAT, ASK)
        keyed.get_text("/metrics", 5.0)
        assert server.keys == ["Bearer k", "Bearer k"]


# H1: Korean over a wire that cuts anywhere


@pytest.mark.case("H1")
@pytest.mark.parametrize("writes_of", [1, 2, 3, 4, 5, 7, 64])
def test_a_syllable_cut_by_tcp_writes_arrives_whole(writes_of: int) -> None:
    pieces = [role(), *(chunk(KOREAN, [i]) for i in range(5)), usage(5), DONE]
    found = streamed(*pieces, writes_of=writes_of)
    assert found.text == KOREAN * 5


@pytest.mark.case("H1")
def test_a_syllable_cut_between_two_writes_with_a_pause_arrives_whole() -> None:
    data = chunk(KOREAN, [1])
    cut = data.index(KOREAN.encode()) + 4  # after byte 4: inside the second syllable
    assert streamed(data[:cut], 0.05, data[cut:], usage(1), DONE).text == KOREAN


@pytest.mark.case("H1")
def test_a_broken_character_that_the_server_sent_is_kept_for_the_gate() -> None:
    assert streamed(chunk("깊은 \ufffd겼다", [1]), usage(1), DONE).text == "깊은 \ufffd겼다"


def test_escaped_and_plain_korean_are_the_same_text() -> None:
    escaped = b'data: {"choices": [{"delta": {"content": "\\uc2b5\\ub2c8\\ub2e4"}, "token_ids": [1]}]}\n\n'
    assert streamed(escaped, usage(1), DONE).text == KOREAN


@pytest.mark.case("H1")
def test_bytes_that_are_no_utf8_are_an_error_and_never_a_replacement_character() -> None:
    with pytest.raises(EngineFailedError, match="no JSON"):
        streamed(b'data: {"choices": [{"delta": {"content": "\xec\x8a"}, "token_ids": [1]}]}\n\n', usage(1), DONE)


def test_lines_that_end_in_crlf_and_comments_between_them_are_read() -> None:
    found = streamed(b": ping\r\n\r\n", chunk("안", [7]).replace(b"\n", b"\r\n"), usage(1), DONE)
    assert found.text == "안"


# the clock


def test_ttft_starts_when_the_prompt_is_sent_and_ends_with_the_first_token() -> None:
    found = streamed(0.1, role(), 0.1, chunk("안", [7]), usage(1), DONE)
    assert 0.2 <= found.ttft_s < 1.0


@pytest.mark.case("D3")
def test_decode_seconds_end_with_the_last_token_and_not_with_done() -> None:
    """D3."""
    started = time.monotonic()
    found = streamed(chunk("a", [1]), 0.1, chunk("b", [2]), 0.1, chunk("c", [3]), 0.6, usage(3), 0.3, DONE)
    whole = time.monotonic() - started
    assert 0.15 <= found.decode_s <= whole - 0.8


def test_an_answer_of_one_chunk_has_no_decode_seconds() -> None:
    assert streamed(chunk("a", [1, 2]), 0.05, usage(2), DONE).decode_s == 0.0


def test_chunks_are_stamped_in_the_order_they_came() -> None:
    found = streamed(chunk("a", [1]), 0.02, chunk("b", [2]), 0.02, chunk("c", [3]), usage(3), DONE)
    assert found.sent_ns < found.chunk_ns[0] < found.chunk_ns[1] < found.chunk_ns[2]


# a stream that goes wrong is a failed engine, never slow data


@pytest.mark.case("D3", "D7")
@pytest.mark.parametrize(
    ("pieces", "reply", "sentence"),
    [
        ([event({"error": {"message": "EngineCore died", "code": 500}}), DONE], {}, "p1: .* carried an error.*died"),
        ([chunk("a", [1]), b"event: error\n" + event({"error": "out of KV"}), DONE], {}, "carried an error.*out of KV"),
        ([chunk("a", [1]), b"event: error\n" + event({"message": "dead"}), DONE], {}, "carried an error.*dead"),
        ([chunk("a", [1]), b"event: error\ndata: out of KV\n\n", usage(1), DONE], {}, "carried an error: out of KV"),
        ([event(["not an object"])], {}, "before"),
        ([b"data: [1]\n\n", DONE], {}, "carried an error"),
        ([chunk("a", [1]), usage(1)], {}, r"p1: the stream ended before \[DONE\]"),
        ([chunk("a", [1]), usage(1), b"data: [DON"], {}, r"before \[DONE\]"),
        ([chunk("a", [1])], {"torn": True}, "p1: "),
        ([], {}, r"before \[DONE\], after 0 events"),
        ([b'{"error": "EngineDeadError"}'], {"status": 500}, "/v1/chat/completions answered 500: .*EngineDeadError"),
        ([chunk("a", [1, 2]), usage(1), DONE], {}, "held 2 token ids, its usage says 1"),
        ([chunk("a", [1]), DONE], {}, "usage says None"),
        ([chunk("a", []), usage(0), DONE], {}, "held 0 token ids"),
        ([b"data: {broken\n\n", DONE], {}, "no JSON: .*broken"),
        ([b"data: " + 100_000 * b"[" + b"\n\n", DONE], {}, "no JSON"),
        ([event({"choices": ["a"]}), DONE], {}, "in another form"),
        ([event({"choices": {"a": 1}}), DONE], {}, "in another form"),
        ([event({"choices": [{"token_ids": ["1"]}]}), DONE], {}, "in another form"),
        ([event({"choices": [{"finish_reason": 1}]}), DONE], {}, "in another form"),
        ([chunk("a", [1]), event({"usage": "1 token"}), DONE], {}, "in another form"),
        ([chunk("a", [1]), event({"usage": {"prompt_tokens": None, "completion_tokens": 1}}), DONE], {}, "other form"),
    ],
    ids=[
        "error event", "error event after text", "error event without the word", "error event of plain text",
        "list event", "list event before DONE", "no DONE", "torn DONE",
        "connection torn", "nothing", "500", "usage mismatch", "no usage", "no tokens", "broken JSON",
        "deep JSON", "choices of texts", "choices no list", "token ids of texts", "a finish reason of a number",
        "usage a text", "a count of null",
    ],
)  # fmt: skip
def test_a_wrong_stream_is_an_engine_failure(pieces, reply, sentence: str) -> None:
    with pytest.raises(EngineFailedError, match=sentence):
        streamed(*pieces, **reply)


@pytest.mark.parametrize("status", [400, 401, 404, 422])
def test_a_question_that_the_engine_refuses_is_our_mistake_and_not_a_dead_engine(status: int) -> None:
    with pytest.raises(InvalidError, match=f"refuses our question.*answered {status}"):
        streamed(b'{"detail": "no"}', status=status)


def test_a_question_that_the_engine_refuses_is_named_with_its_file_and_line() -> None:
    asked = Prompt("p1", "quality", None, "x", 8, where="team.jsonl:7")
    with (
        serving(Reply.of(b'{"detail": "no"}', status=400)) as server,
        pytest.raises(InvalidError, match=r"prompt p1 \(team\.jsonl:7\): /v1/completions answered 400"),
    ):
        Client(server.url, "m").stream(asked, Ask(8, ignore_eos=False, timeout_s=5.0))


def test_an_engine_that_hangs_is_given_up_after_the_timeout() -> None:
    with pytest.raises(EngineFailedError, match=r"no token came for prompt p1 in 0\.3 s: timed out"):
        streamed(chunk("a", [1]), 20.0, ask=Ask(16, ignore_eos=False, timeout_s=0.3))


PINGS = {
    "comments": b": ping\n\n",
    "events without a token": chunk("", []),
    "a chat's first event": role(),
    "the prompt's own tokens": event({"choices": [{"delta": {"content": ""}, "prompt_token_ids": [1, 2]}]}),
}


@pytest.mark.case("A5")
@pytest.mark.parametrize("ping", PINGS.values(), ids=PINGS)
def test_bytes_that_bring_no_token_do_not_end_a_silence(ping: bytes) -> None:
    pieces = [piece for _ in range(100) for piece in (ping, 0.1)]
    started = time.monotonic()
    with pytest.raises(EngineFailedError, match=r"no token came for prompt p1 in 0\.5 s: timed out"):
        streamed(chunk("a", [1]), *pieces, ask=Ask(16, ignore_eos=False, timeout_s=0.5))
    assert time.monotonic() - started < 8.0  # of ten seconds of pings


def test_tokens_that_keep_coming_are_waited_for_however_long_it_takes() -> None:
    pieces = [piece for i in range(8) for piece in (chunk("a", [i]), 0.2)]
    found = streamed(*pieces, usage(8), DONE, ask=Ask(16, ignore_eos=False, timeout_s=1.0))
    assert len(found.token_ids) == 8


def test_an_engine_that_never_begins_to_answer_is_given_up_too() -> None:
    with client(chunk("a", [1])) as found, socket.create_server(("127.0.0.1", 0)) as mute:
        found.port = mute.getsockname()[1]
        with pytest.raises(EngineFailedError, match=r"no token came for prompt p1 in 0\.3 s: timed out"):
            found.stream(CHAT, Ask(16, ignore_eos=False, timeout_s=0.3))


def test_an_engine_that_is_gone_is_an_engine_failure() -> None:
    with serving(Reply.of()) as server:
        gone = Client(server.url, "nonce")
    with pytest.raises(EngineFailedError, match="p1: ConnectionRefusedError"):
        gone.stream(CHAT, ASK)


# plain texts


def test_a_get_gives_the_text() -> None:
    with serving(Reply.of(), {"/metrics": lambda: "안녕 1\n"}) as server:
        assert Client(server.url, "m").get_text("/metrics", 5.0) == "안녕 1\n"


def test_a_get_that_is_not_answered_with_200_says_so() -> None:
    with (
        serving(Reply.of()) as server,
        pytest.raises(EngineFailedError, match=r"GET /metrics answered 404: .*Not Found"),
    ):
        Client(server.url, "m").get_text("/metrics", 5.0)


def test_a_get_of_a_dead_engine_is_an_engine_failure() -> None:
    with serving(Reply.of()) as server:
        gone = Client(server.url, "m")
    with pytest.raises(EngineFailedError, match="GET /metrics failed: ConnectionRefusedError"):
        gone.get_text("/metrics", 1.0)
