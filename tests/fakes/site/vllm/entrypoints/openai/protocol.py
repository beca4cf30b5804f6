"""The bodies of requests and answers."""

import json
import time
import uuid
from dataclasses import dataclass
from typing import Any

from vllm.v1.engine.core import Request, Step
from vllm.v1.worker.model_runner import reasoning, rival, text_of

DEFAULT_MAX_TOKENS = 16


@dataclass(frozen=True)
class Ask:
    """One request of a client."""

    chat: bool
    model: str
    request: Request
    stream: bool
    usage: bool
    token_ids: bool
    id: str
    rendered: str
    logprobs: bool = False


def parse(body: dict[str, Any], *, chat: bool) -> Ask:
    """A completion or a chat completion. Raises KeyError or TypeError on a body that is neither."""
    prompt = body["messages"][-1]["content"] if chat else body["prompt"]
    text = prompt if isinstance(prompt, str) else text_of(list(prompt))
    limit = body.get("max_tokens") or body.get("max_completion_tokens") or DEFAULT_MAX_TOKENS
    options = body.get("stream_options") or {}
    return Ask(
        chat=chat,
        model=body["model"],
        request=Request(
            text,
            limit,
            bool(body.get("ignore_eos")),
            drawn=bool(body.get("temperature")),
            streamed=bool(body.get("stream")),
        ),
        stream=bool(body.get("stream")),
        usage=bool(options.get("include_usage")),
        token_ids=bool(body.get("return_token_ids")),
        id=("chatcmpl-" if chat else "cmpl-") + uuid.uuid4().hex,
        rendered=rendered(body, text),
        logprobs=bool(body.get("logprobs")),
    )


def rendered(body: dict[str, Any], text: str) -> str:
    """The prompt as the template renders it: what stands before the last message, and the template's arguments."""
    before = "".join(message["content"] for message in body.get("messages", [])[:-1])
    arguments = body.get("chat_template_kwargs")
    return before + text + (json.dumps(arguments, sort_keys=True) if arguments else "")


def chunk(ask: Ask, step: Step, *, given: int) -> bytes:
    """One event of a stream; `given` tokens came before it."""
    first, thought = given == 0, step.ids[: max(0, len(reasoning(ask.request.prompt)) - given)]
    text = text_of(step.ids[len(thought) :])
    choice: dict[str, Any] = {"index": 0, "logprobs": None, "finish_reason": step.finish_reason, "stop_reason": None}
    choice |= {"delta": {"content": text}} if ask.chat else {"text": text}
    if thought:
        choice["delta"] = ({"content": text} if text else {}) | {"reasoning": text_of(thought)}
    found = _envelope(ask, "chat.completion.chunk" if ask.chat else "text_completion")
    if ask.token_ids:
        choice["token_ids"] = step.ids
        holder = found if ask.chat else choice
        holder["prompt_token_ids"] = prompt_ids(ask) if first else None
    return event(found | {"choices": [choice]})


def role_chunk(ask: Ask) -> bytes:
    """A chat stream's first event, which holds no token."""
    choice = {"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}
    return event(_envelope(ask, "chat.completion.chunk") | {"choices": [choice]})


def usage_chunk(ask: Ask, tokens: int) -> bytes:
    """A stream's last event but [DONE]."""
    found = _envelope(ask, "chat.completion.chunk" if ask.chat else "text_completion")
    return event(found | {"choices": [], "usage": usage(ask, tokens)})


def whole(ask: Ask, steps: list[Step]) -> bytes:
    """The answer of a request that does not stream."""
    ids = [i for step in steps for i in step.ids]
    choice: dict[str, Any] = {"index": 0, "logprobs": None, "finish_reason": steps[-1].finish_reason}
    text = text_of(ids)
    choice |= {"message": {"role": "assistant", "content": text}} if ask.chat else {"text": text}
    if ask.logprobs:
        choice["logprobs"] = logprobs(ask, ids)
    found = _envelope(ask, "chat.completion" if ask.chat else "text_completion")
    if ask.token_ids:
        choice["token_ids"] = ids
        (found if ask.chat else choice)["prompt_token_ids"] = prompt_ids(ask)
    return json.dumps(found | {"choices": [choice], "usage": usage(ask, len(ids))}, ensure_ascii=False).encode()


def logprobs(ask: Ask, ids: list[int]) -> dict[str, Any]:
    """Of every token and its rival, tokens written as ids, in the form of either endpoint."""
    rows = [(f"token_id:{i}", *rival(ask.request.prompt, place)) for place, i in enumerate(ids)]
    tops = [{token: -0.1, f"token_id:{other}": -0.1 - gap} for token, other, gap in rows]
    if not ask.chat:
        return {"tokens": [row[0] for row in rows], "token_logprobs": [-0.1] * len(rows), "top_logprobs": tops}
    told = [[{"token": token, "logprob": value} for token, value in top.items()] for top in tops]
    return {
        "content": [
            {"token": row[0], "logprob": -0.1, "top_logprobs": top} for row, top in zip(rows, told, strict=True)
        ]
    }


def usage(ask: Ask, tokens: int) -> dict[str, int]:
    """Token counts."""
    prompt = len(ask.rendered)
    return {"prompt_tokens": prompt, "completion_tokens": tokens, "total_tokens": prompt + tokens}


def prompt_ids(ask: Ask) -> list[int]:
    """The prompt's tokens."""
    return list(map(ord, ask.rendered))


def event(body: dict[str, Any]) -> bytes:
    """One server-sent event."""
    return b"data: " + json.dumps(body, ensure_ascii=False).encode() + b"\n\n"


def _envelope(ask: Ask, kind: str) -> dict[str, Any]:
    return {"id": ask.id, "object": kind, "created": int(time.time()), "model": ask.model}
