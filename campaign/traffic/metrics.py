"""From the engine's /metrics text to counters, and from two of them to a window. Pure.

Position 1 of a draft is the engine's label `position="0"`; it is converted here and nowhere else. Counters of several
engines (data parallel) are summed on request and kept apart otherwise; `_created` samples are ignored. Source of the
names: vLLM 0.29.0, vllm/v1/metrics/loggers.py and vllm/v1/spec_decode/metrics.py.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import TypeVar

from prometheus_client.parser import text_string_to_metric_families

from campaign.errors import InvalidError
from campaign.evidence import DraftCounts
from campaign.traffic.sample import Sample

Key = TypeVar("Key", str, int)

ALIASES = {  # ours: the engine's names, the newest first (they are renamed, never summed)
    "drafts": ("vllm:spec_decode_num_drafts_total",),
    "draft_tokens": ("vllm:spec_decode_num_draft_tokens_total",),
    "accepted": ("vllm:spec_decode_num_accepted_tokens_total",),
    "generation_tokens": ("vllm:generation_tokens_total",),
    "prompt_tokens": ("vllm:prompt_tokens_total",),
    "decode_s": ("vllm:request_decode_time_seconds_sum",),
    "iterations": ("vllm:iteration_tokens_total_count",),
    "finished": ("vllm:request_success_total",),
    "preemptions": ("vllm:num_preemptions_total",),
    "token_s": (  # seconds a token, summed over requests
        "vllm:request_time_per_output_token_seconds_sum",
        "vllm:time_per_output_token_seconds_sum",
    ),
    "prefix_queries": ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
    "prefix_hits": ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"),
}
PER_POSITION = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
GAUGES = {"kv_usage": ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")}  # as ALIASES; never summed
RUNNING = "vllm:num_requests_running"
WAITING = "vllm:num_requests_waiting"
READ = {PER_POSITION, RUNNING, WAITING} | {name for names in (ALIASES | GAUGES).values() for name in names}
LONGEST_POSITION = 5  # digits
CLOCK_TOLERANCE = 0.01  # house.md: engine's and client's decode seconds may differ by 1 %
IDENTITY_TOLERANCE = 0.005  # house.md: tokens against drafts and accepted


@dataclass(frozen=True)
class Counters:
    """One scrape: engine -> our name -> value, and engine -> draft position (from 1) -> accepted tokens."""

    by_engine: dict[str, dict[str, float]]
    accepted_at: dict[str, dict[int, float]] = field(default_factory=dict)
    running: float = 0.0
    waiting: float = 0.0
    gauges: dict[str, dict[str, float]] = field(default_factory=dict)  # engine -> our name of GAUGES -> value

    def total(self, name: str) -> float:
        """Sum over engines. Raises InvalidError when no engine exposes the metric: missing is never 0."""
        found = [row[name] for row in self.by_engine.values() if name in row]
        if not found:
            raise InvalidError(f"metric missing: /metrics shows none of {', '.join(ALIASES[name])}")
        return sum(found)

    def highest(self, gauge: str) -> float:
        """The largest of all engines: a gauge has no sum. Raises InvalidError when no engine exposes it."""
        found = [row[gauge] for row in self.gauges.values() if gauge in row]
        if not found:
            raise InvalidError(f"metric missing: /metrics shows none of {', '.join(GAUGES[gauge])}")
        return max(found)

    def has(self, name: str) -> bool:
        """Whether any engine exposes the metric."""
        return any(name in row for row in self.by_engine.values())

    def moved(self) -> tuple[str, ...]:
        """Of a difference of two scrapes: what is not 0 in it, by our names."""
        return tuple(dict.fromkeys(name for row in self.by_engine.values() for name, value in row.items() if value))

    def accepted(self) -> tuple[float, ...]:
        """Accepted tokens per draft position, summed over engines; a gap is 0."""
        last = max((position for row in self.accepted_at.values() for position in row), default=0)
        return tuple(sum(row.get(p, 0.0) for row in self.accepted_at.values()) for p in range(1, last + 1))

    def since(self, before: "Counters") -> "Counters":
        """The difference of two scrapes of one server. Raises InvalidError when a counter fell or an engine left."""
        if gone := before.by_engine.keys() - self.by_engine.keys():
            raise InvalidError(f"engine {', '.join(sorted(gone))} stopped reporting between two scrapes")
        for engine, row in before.by_engine.items():
            if hidden := row.keys() - self.by_engine[engine].keys():
                raise InvalidError(f"engine {engine} stopped showing {', '.join(sorted(hidden))} between two scrapes")
        rows = {e: _minus(row, before.by_engine.get(e, {}), e) for e, row in self.by_engine.items()}
        accepted = {e: _minus(row, before.accepted_at.get(e, {}), e) for e, row in self.accepted_at.items()}
        return Counters(rows, accepted, self.running, self.waiting, self.gauges)


def _minus(after: dict[Key, float], before: dict[Key, float], engine: str) -> dict[Key, float]:
    """Difference name by name. A counter that fell was reset (a restart) or belongs to another process."""
    fell = [str(name) for name, value in after.items() if value < before.get(name, 0.0)]
    if fell:
        raise InvalidError(
            f"counters of engine {engine} fell within the window ({', '.join(fell[:3])}): it restarted, or several "
            "processes answer /metrics in turn; no rate is made of this"
        )
    return {name: value - before.get(name, 0.0) for name, value in after.items()}


def parse(text: str) -> Counters:
    """One /metrics text. Raises InvalidError on text that is not Prometheus'."""
    by_engine: dict[str, dict[str, float]] = {}
    accepted: dict[str, dict[int, float]] = {}
    gauges: dict[str, dict[str, float]] = {}
    requests = {RUNNING: 0.0, WAITING: 0.0}
    ranks = {series: (ours, rank) for ours, names in (ALIASES | GAUGES).items() for rank, series in enumerate(names)}
    best: dict[tuple[str, str], int] = {}
    for name, labels, value in _samples(text):
        engine = labels.get("engine", "0")
        if name == PER_POSITION:
            row = accepted.setdefault(engine, {})
            position = _position(labels) + 1
            row[position] = row.get(position, 0.0) + value
        elif name in requests:
            requests[name] += value
        elif name in ranks:
            ours, rank = ranks[name]
            seen = best.setdefault((engine, ours), rank)
            best[engine, ours] = min(seen, rank)
            rows = gauges if ours in GAUGES else by_engine
            _take(rows.setdefault(engine, {}), ours, value, newer=rank < seen, older=rank > seen)
    return Counters(by_engine, accepted, requests[RUNNING], requests[WAITING], gauges)


def _take(row: dict[str, float], ours: str, value: float, *, newer: bool, older: bool) -> None:
    """Add one sample; the newest name of a renamed metric wins, its older names are left out."""
    if newer:
        row.pop(ours, None)
    if not older:
        row[ours] = row.get(ours, 0.0) + value


def _samples(text: str) -> list[tuple[str, dict[str, str], float]]:
    """The samples that are read. Raises InvalidError for one that is no number of 0 or more, or is there twice."""
    try:
        families = list(text_string_to_metric_families(text))
    except ValueError as error:
        raise InvalidError(f"/metrics is not Prometheus text: {error}") from error
    found = [(s.name, s.labels, s.value) for family in families for s in family.samples if s.name in READ]
    for name, _, value in found:
        if not (isfinite(value) and value >= 0):
            raise InvalidError(f"/metrics shows {name} {value:g}; wanted a finite number, 0 or more")
    seen = Counter((name, *sorted(labels.items())) for name, labels, _ in found)
    twice = next((series[0] for series, times in seen.items() if times > 1), "")
    if twice:
        raise InvalidError(f"/metrics shows {twice} twice with the same labels: two answers in one text?")
    return found


def _position(labels: Mapping[str, str]) -> int:
    position = labels.get("position", "")
    if not (position.isascii() and position.isdecimal() and len(position) < LONGEST_POSITION):
        raise InvalidError(f"/metrics shows {PER_POSITION} at position {position!r}; wanted a whole number")
    return int(position)


def draft_counts(delta: Counters) -> DraftCounts | None:
    """Speculation counters of a window; None when the engine exposes none."""
    if not delta.has("drafts"):
        return None
    return DraftCounts(int(delta.total("drafts")), tuple(int(a) for a in delta.accepted()))


def unplaced(counters: Counters) -> bool:
    """Whether drafts are counted and no position's accepted tokens are shown: missing, and no acceptance of 0."""
    return counters.has("drafts") and counters.total("drafts") > 0 and not any(counters.accepted_at.values())


def identity_gap(counts: DraftCounts, samples: tuple[Sample, ...]) -> float:
    """How far tokens are from what drafts and accepted tokens explain, as a share of the tokens; 0 is exact.

    Every request gives one token by its prefill, then 1 + accepted tokens a draft step; the last step is cut by the
    length limit or an end token. How much was cut is known only as a range: at least nothing, at most what the last
    chunk could still have held (K + 1 tokens less those it did hold; all but one where it holds several steps). The
    gap is the distance to that range.
    """
    tokens = sum(s.tokens for s in samples)
    explained = len(samples) + counts.drafts + sum(counts.accepted)
    k = len(counts.accepted)
    merged = counts.drafts != sum(len(s.chunk_tokens) - 1 for s in samples)  # the server put steps together
    drafted = [s for s in samples if merged or len(s.chunk_tokens) > 1]
    may_be_cut = sum(k if merged else max(0, k + 1 - s.chunk_tokens[-1]) for s in drafted)
    surplus = explained - tokens
    outside = max(0, -surplus, surplus - may_be_cut)
    return outside / tokens if tokens else 0.0


def clock_gap(decode_s: float, samples: tuple[Sample, ...]) -> float:
    """Relative difference of the client's decode seconds (first to last chunk) from the engine's."""
    client_s = sum(s.decode_s for s in samples)
    return abs(client_s - decode_s) / decode_s if decode_s > 0 else float("inf")
