"""What streamed answers show: each figure by its own rule and clock, and whether they show a speed at all (D2 to D14).

The rules are traffic.timing's: step/s is counted in chunks and never in tokens, tok/s in tokens and never in chunks
(one chunk is one decode step). The server's usage counts the tokens; a text is never tokenised again.
"""

from collections.abc import Iterator, Sequence
from math import isfinite, log
from statistics import median

from campaign.errors import ExitCode, worst
from campaign.inspection.finding import WORDS, Finding, Row
from campaign.inspection.recognised import Source
from campaign.inspection.requests import Request, of
from campaign.traffic import timing
from verdict.words import number_of

CLOCK = "client's clock"
MOST_DRAFT_TOKENS = 16  # where K is not known, the largest that is usual
COLD_LN = 0.2  # by which the first request is slower, where requests were cold
WARM_TOLERANCE_LN = 0.1  # within which one is as fast as the later ones
LEAST_REQUESTS = 4  # to tell warm-up or a trend
TREND_PCT = 5.0
Concluded = tuple[ExitCode, str]


def look(sources: Sequence[Source]) -> Finding:
    """One file's requests, or two files against each other."""
    files = [of(source) for source in sources]
    names = tuple(source.name for source in sources)
    rows: list[Row] = []
    told: list[Concluded] = []
    for name, requests in zip(names, files, strict=True):
        rows += [(name, "")] if len(files) > 1 else []
        concluded = list(_concluded(requests))
        rows += list(_rows(requests, [code for code, _ in concluded]))
        told += concluded
    if len(files) == len(("A", "B")) and not told:
        told += list(_compared(*files))
    rows += [(f"{WORDS[code]} ({int(code)})", why) for code, why in told]
    code = worst([code for code, _ in told]) if told else ExitCode.PASS
    *some, last = (len(requests) for requests in files)
    counts = "".join(f"{count}, " for count in some) + number_of(last, "request")
    head = f"streams      {' against '.join(names)}: {counts}"
    return Finding("stream", names, head, tuple(rows), code, numbers=_numbers(files), width=18)


def warm_up(requests: Sequence[Request]) -> int:
    """How many requests at the beginning are slower than the later ones agree to be; 0 where nothing can be told."""
    if len(requests) < LEAST_REQUESTS:
        return 0
    rates = [_pace(request) for request in requests]
    steady = median(rates[len(rates) // 2 :])
    if min(rates) <= 0 or not isfinite(steady) or log(steady / rates[0]) < COLD_LN:
        return 0
    return next((at for at, rate in enumerate(rates) if log(steady / rate) <= WARM_TOLERANCE_LN), 0)


def speeds(requests: Sequence[Request]) -> timing.Rates:
    """By timing's rules, of the requests after the cold ones; empty where chunks do not show all tokens."""
    samples = [request.sample for request in requests[warm_up(requests) :]]
    useless = any(_burst(request) or request.chunk_tokens != request.sample.tokens for request in requests)
    return timing.Rates(None, None, None, None) if useless else timing.rates(samples)


def _rows(requests: Sequence[Request], codes: Sequence[ExitCode]) -> Iterator[Row]:
    """No rate of answers that failed, or were not what was asked for."""
    if not {ExitCode.FAIL, ExitCode.INVALID} & set(codes):
        yield from _rate_rows(requests)
    for request in requests:
        yield from _token_rows(request)


def _rate_rows(requests: Sequence[Request]) -> Iterator[Row]:
    dropped = warm_up(requests)
    if dropped:
        yield "warm-up", f"{dropped} of {len(requests)} requests are cold and left out of what follows"
    if len(requests) > 1:
        rates = ", ".join(f"{_pace(request):.4g}" for request in requests)
        yield "chunk/s each", f"{rates} (of each request, sending to last chunk; {CLOCK})"
    found = speeds(requests)
    if found.chunk_gap_s is not None:
        yield "chunk gap", f"{1000 * found.chunk_gap_s:.4g} ms (time between chunks; {CLOCK})"
    if found.tpot_s is not None:
        yield "TPOT", f"{1000 * found.tpot_s:.4g} ms (first to last chunk over the tokens after the first; {CLOCK})"
    if found.step_per_s is not None and found.tok_per_s is not None:
        length = found.tok_per_s / found.step_per_s
        yield "step/s", f"{found.step_per_s:.4g} (chunks after the first over their seconds; {CLOCK})"
        yield "tok/s", f"{found.tok_per_s:.4g} at {length:.3g} tokens a step (tokens after the first; {CLOCK})"


def _token_rows(request: Request) -> Iterator[Row]:
    """Where counts differ: the server's usage wins, and the difference is told (cases D3, D5)."""
    sample, held = request.sample, request.chunk_tokens
    if held != sample.tokens:
        yield "tokens", f"{sample.tokens} by the server's usage, which counts; the chunks hold {held}"
    if told := timing.hidden([sample]):
        yield "", told
    if request.client_tokens is not None and request.client_tokens != sample.tokens:
        again = f"tokenising the text again gives {request.client_tokens}, which does not count"
        yield "tokens", f"{sample.tokens} by the server's usage; {again}"


def _concluded(requests: Sequence[Request]) -> Iterator[Concluded]:
    """What a run would make of these requests."""
    for request in requests:
        name, asked = request.sample.prompt_id, request.asked_tokens
        if request.error:
            yield ExitCode.FAIL, f"{name}: the stream carried an error: {request.error[:200]}"
        elif asked is not None and request.sample.tokens != asked:
            short = f"{name} gave {request.sample.tokens} tokens of {asked} asked with ignore_eos"
            yield ExitCode.INVALID, f"early stop: {short}"
        if burst := _burst(request):
            yield ExitCode.INVALID, f"{name}: {burst}{_end_to_end(request)}"
    drift = _drift(requests[warm_up(requests) :])
    if drift:
        yield ExitCode.INCONCLUSIVE, drift


def _burst(request: Request) -> str:
    k = MOST_DRAFT_TOKENS if request.draft_tokens is None else request.draft_tokens
    return timing.in_bursts([request.sample], k) or timing.merged(request.sample, k)


def _end_to_end(request: Request) -> str:
    """What is left of a stream that came in bursts."""
    if not request.sent or not request.total_s:
        return ""
    return f"; end to end it is {request.sample.tokens / request.total_s:.4g} tok/s, the wait for the first included"


def _drift(requests: Sequence[Request]) -> str:
    """A speed that falls from third to third by more than 5 % (cases D14)."""
    if len(requests) < LEAST_REQUESTS:
        return ""
    trend = timing.trend([_pace(request) for request in requests])
    if trend is None or not trend.falls or trend.change_pct > -TREND_PCT:
        return ""
    return (
        f"drift within the run: {trend.first:.4g} chunk/s in its first third, {trend.last:.4g} in its last, all falling"
    )


def _compared(one: Sequence[Request], other: Sequence[Request]) -> Iterator[Concluded]:
    """Two windows: what they show beside each other. Without boots there is no interval, so no effect is told."""
    found = [speeds(requests) for requests in (one, other)]
    pairs = [(rates.step_per_s, rates.tok_per_s) for rates in found]
    known = [(steps, tokens / steps) for steps, tokens in pairs if steps and tokens]
    if len(known) < len(pairs):
        return
    (steps, length), (other_steps, other_length) = known
    text = f"step/s {steps:.4g} and {other_steps:.4g}"
    if abs(log(other_length / length)) > WARM_TOLERANCE_LN:
        text += f"; tok/s differ by the acceptance ({length:.3g} and {other_length:.3g} tokens a step)"
    word = "no speed change is shown" if abs(log(other_steps / steps)) <= WARM_TOLERANCE_LN else "the two differ"
    yield ExitCode.INCONCLUSIVE, f"{word}: {text}; two windows have no interval, measure a bracket"


def _pace(request: Request) -> float:
    """Chunks a second over the whole request, the wait for the first included: not what its text makes of a step.

    0 where the request took no time: nothing can be told of it.
    """
    return len(request.sample.chunk_ns) / request.total_s if request.total_s > 0 else 0.0


def _numbers(files: Sequence[Sequence[Request]]) -> dict[str, float]:
    if len(files) != 1:
        return {}
    found = {name: value for name, value in vars(speeds(files[0])).items() if value is not None}
    return found | {"warm_up_requests": float(warm_up(files[0]))}
