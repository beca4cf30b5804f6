"""What a bracket leaves behind for the gates to judge. Values only: nothing here reads a file, a clock or an engine."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Literal

from verdict.claims import Claim, Judgement
from verdict.history import History
from verdict.looks import Looks

BETWEEN_REASONS = " | "  # in a fact that tells those of several windows
Status = Literal["ok", "failed", "invalid", "void"]


@dataclass(frozen=True)
class Answer:
    """One prompt's answer in one boot."""

    prompt_id: str
    prompt_set: str  # quality | korean | korean_sampled | decode | heldout
    text: str
    token_ids: tuple[int, ...]
    finish_reason: str
    prompt_tokens: int
    ok: bool | None = None  # what the prompt's checker said; None where it has none
    why: str = ""  # the checker's sentence when it is not ok
    reasoning: str = ""  # what a reasoning parser took out of the text; never scored, its tokens are in token_ids
    prompt_hash: str = ""  # of the rendered prompt's token ids; empty where the engine does not give them
    max_tokens: int = 0  # the budget it was asked with; 0 is not told
    sampled: bool = False  # drawn, not greedy: two of them need not be alike
    foreign: int = 0  # Han and kana that neither the prompt holds nor an aside explains; of Korean prompts
    hangul: int = 0


@dataclass(frozen=True)
class Again:
    """A prompt asked again after the window, as far as the token at which its answers part, with log probabilities."""

    prompt_id: str
    prompt_set: str
    at: int  # the first token that differs, from 0
    token_ids: tuple[int, ...]  # what came this time, up to and with that place
    logprobs: dict[str, float] = field(default_factory=dict)  # of the likeliest tokens at that place, by token id


@dataclass(frozen=True)
class DraftCounts:
    """Speculation counters over a stretch of requests; accepted[i] belongs to draft position i + 1."""

    drafts: int
    accepted: tuple[int, ...]

    def rates_pp(self) -> tuple[float, ...]:
        """Acceptance per position in percentage points; empty when nothing was drafted (never 0 %)."""
        return tuple(100.0 * a / self.drafts for a in self.accepted) if self.drafts else ()

    @property
    def kept_pp(self) -> float | None:
        """Accepted tokens per drafted token over all positions, in points; None when nothing was drafted."""
        drafted = self.drafts * len(self.accepted)
        return 100.0 * sum(self.accepted) / drafted if drafted else None

    @property
    def acceptance_length(self) -> float | None:
        """Tokens per draft step, 1 + accepted / drafts; None when nothing was drafted."""
        return 1.0 + sum(self.accepted) / self.drafts if self.drafts else None


def pooled(found: Iterable[DraftCounts]) -> DraftCounts | None:
    """Counters together: totals, never a mean of rates; a position that one of them lacks was not accepted there.

    None of none.
    """
    counts = list(found)
    if not counts:
        return None
    columns = zip_longest(*(one.accepted for one in counts), fillvalue=0)
    return DraftCounts(sum(one.drafts for one in counts), tuple(map(sum, columns)))


@dataclass(frozen=True)
class PrefixPass:
    """Prompts with a shared prefix, asked one at a time: each on an emptied prefix cache, or each on a full one.

    Tokens of prompts as they were served, looked up in the cache and found there; None where no counter shows them.
    """

    prompt_tokens: int
    queries: int | None
    hits: int | None
    preemptions: int
    counts: dict[str, DraftCounts]  # by prompt
    hits_of: dict[str, int]  # tokens of one asking, by prompt
    tokens_of: dict[str, int]  # of the prompt
    ttft_s: dict[str, float]  # client's clock, the mean of a prompt's askings
    rounds: int = 1  # askings of each prompt

    @property
    def hit_pct(self) -> float | None:
        """Tokens found per token looked up, in per cent; None where nothing was looked up or counted."""
        return 100.0 * self.hits / self.queries if self.hits is not None and self.queries else None


@dataclass(frozen=True)
class PrefixFacts:
    """What a boot showed of its prefix cache."""

    shared_tokens: int  # the shortest prefix that a prompt has in common with another one
    cold: PrefixPass
    warm: PrefixPass


@dataclass(frozen=True)
class KvFacts:
    """The engine's KV budget as it reports it, and what the configuration needs."""

    capacity_tokens: int
    block_size: int
    blocks: int
    max_num_seqs: int
    max_model_len: int
    batches_in_flight: int
    draft_tokens: int

    @property
    def needed_blocks(self) -> int:
        """max_num_seqs * ceil((max_model_len + batches_in_flight * (K + 1)) / block) (house.md)."""
        tokens = self.max_model_len + self.batches_in_flight * (self.draft_tokens + 1)
        return self.max_num_seqs * -(-tokens // self.block_size)


@dataclass(frozen=True)
class WitnessRow:
    """One layer of one knob's witness: what was wanted, what the engine showed."""

    knob: str
    layer: Literal["asked", "resolved", "behaved", "attested"]
    what: str
    wanted: str
    found: str
    ok: bool
    source: str = ""  # which process or file showed it


@dataclass(frozen=True)
class Shown:
    """What an overlay said of itself in one of the engine's processes: counters over the window, state after."""

    overlay: str
    place: str  # "Worker 0"
    grown: dict[str, float] = field(default_factory=dict)  # by the counter's own name
    state: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class BootRecord:
    """One boot, the datum of the bracket."""

    index: int  # from 1, in the order they ran
    letter: Literal["A", "B"]  # A is base
    arm: str
    status: Status
    reason: str = ""  # why it is not ok, one sentence
    log_tail: tuple[str, ...] = ()
    metrics: dict[str, float] = field(default_factory=dict)  # names.py
    natural: DraftCounts | None = None  # natural-length prompts: what acceptance is claimed on
    by_prompt: dict[str, DraftCounts] = field(default_factory=dict)
    window: DraftCounts | None = None  # the fixed-length window
    answers: tuple[Answer, ...] = ()
    kv: KvFacts | None = None
    witness: tuple[WitnessRow, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)  # boot, warm_up, prompts, window, stop
    facts: dict[str, str] = field(default_factory=dict)  # runner, method, stage digest, pid, ...
    environment: dict[str, float] = field(default_factory=dict)  # what else the machine did meanwhile (host_watch.py)
    counted: dict[str, DraftCounts] = field(default_factory=dict)  # by the stream: cold, warm up, first, last, context
    pair: int = 0  # of a duet, from 1: the two boots of a pair were up at once; 0 in a bracket of boots
    again: tuple[Again, ...] = ()  # prompts whose answers part, asked once more with log probabilities
    session: int = 0  # which sitting it ran in (gates/sittings.py); of a record of several hosts, which one
    prefix: PrefixFacts | None = None  # of a workload with a shared prefix
    shown: tuple[Shown, ...] = ()  # by its overlays


@dataclass(frozen=True)
class Evidence:
    """All boots of one experiment, in the order they ran, with what was registered before the first."""

    experiment: str
    boots: tuple[BootRecord, ...]
    claims: dict[str, Claim]
    letters: str  # the planned schedule after the coin, e.g. ABBABAAB
    history: History | None = None
    logic_only: str = ""  # why the speed of these boots says nothing ("Triton's interpreter"); empty where it does
    looks: Looks | None = None  # as planned, with their levels; none is one look at the kind's own level
    look: int = 1  # which of them this is
    synthetic: str = ""  # the label of an engine that makes its acceptance up; empty where it drafts for real
    level: float | None = None  # of a record, the two-sided level of the interval where it is not the look's or kind's
    sittings: tuple[str, ...] = ()  # of a record, where another sitting began (gates/sittings.py)
    turns: int = 1  # how often a window asks its prompts: repeats are no new trials
    # of several candidates of one base: the claims that were judged for all in one fit, or why one could not be
    contrasts: Mapping[str, Judgement | str] = field(default_factory=dict)
    contrasts_with_voided: Mapping[str, Judgement | str] = field(default_factory=dict)

    @property
    def which_look(self) -> tuple[int, int]:
        """This look's number, and how many were planned."""
        return (self.look, len(self.looks.boots)) if self.looks else (1, 1)

    def of(self, letter: str) -> tuple[BootRecord, ...]:
        """The boots of one arm's letter."""
        return tuple(b for b in self.boots if b.letter == letter)

    def values(self, metric: str) -> list[float] | None:
        """The metric of every boot in run order; None unless every planned boot gave it."""
        found = [b.metrics[metric] for b in self.boots if b.status == "ok" and metric in b.metrics]
        return found if len(found) == len(self.letters) else None
