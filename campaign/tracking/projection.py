"""What a campaign becomes in the tracker: names, tags, statuses and numbers. Pure: knows no tracker.

Tag texts may be long and odd: `fitting` makes them fit. Metrics are (name, value, step), not yet filtered.
"""

import hashlib
import re
from collections.abc import Mapping
from math import isfinite
from typing import Literal

from campaign.alphabet import to_key
from campaign.config import Campaign
from campaign.disclosure import may_show_effect, may_show_readings
from campaign.evidence import BootRecord, Evidence
from campaign.gates.base import GateResult
from campaign.gates.footing import sound, voided
from campaign.names import (
    TAG_ARM,
    TAG_BOOTS,
    TAG_CAMPAIGN,
    TAG_CLAIM_PREFIX,
    TAG_ENGINE,
    TAG_EXPERIMENT,
    TAG_GATE_PREFIX,
    TAG_LEVEL,
    TAG_VERDICT,
    TAG_VOIDED,
    speed_name,
)
from campaign.tracking import owner
from campaign.tracking.owner import Status
from verdict.words import Verdict, number_of

Numbers = list[tuple[str, float, int]]
LONGEST_TAG = 4000  # MLflow takes 8000 and would raise over it
SHOWN_OF_LONG = 500  # characters of a longer text that its tag shows
GAPS = re.compile(r"\s{2,}")
SERIES = {"ok": "boots", "void": "void.boots"}  # by a boot's status; of any other there is none
ACCEPTANCE = "acceptance_"  # how the names of its readings begin
NO_ERROR_BAR = "no error bar yet: no number"


def boot_name(boot: BootRecord) -> str:
    """The boot as its folder is called: 05-B."""
    return f"{boot.index:02d}-{boot.letter}"


def common_tags(campaign_id: str, experiment: str) -> dict[str, str]:
    """What every run of a campaign carries: whose it is, and which process wrote it."""
    return {TAG_CAMPAIGN: campaign_id, TAG_EXPERIMENT: experiment} | owner.tags()


def verdict_tags(results: tuple[GateResult, ...], verdict: Verdict) -> dict[str, str]:
    """The experiment's verdict, and each gate's."""
    gates = {f"{TAG_GATE_PREFIX}{_dotted(result)}": result.verdict.value for result in results}
    return {TAG_VERDICT: verdict.value} | gates


def level_tag(level: Literal["campaign", "experiment", "boot"]) -> dict[str, str]:
    """Where in the tree a run stands."""
    return {TAG_LEVEL: level}


def boot_tags(boot: BootRecord) -> dict[str, str]:
    """A boot's arm, place, status and facts; of a fact whose name no tracker takes, that it was left out."""
    facts = dict(_named(f"fact.{name}", value) for name, value in boot.facts.items())
    reason = {"reason": boot.reason} if boot.reason else {}
    place = {"boot": boot_name(boot), "status": boot.status, "witness_ok": str(all(row.ok for row in boot.witness))}
    return level_tag("boot") | {TAG_ARM: boot.arm} | place | reason | facts


def _named(name: str, value: str) -> tuple[str, str]:
    try:
        return to_key(name), value
    except ValueError as error:
        return left_out(name), str(error)


def left_out(name: str) -> str:
    """The tag that says why something of this name is not there."""
    return f"left_out.{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:12]}"


def engine_tags(campaign: Campaign, evidence: Evidence) -> dict[str, str]:
    """What was measured, for a ledger's row: the engine, the order of the boots, how many of them were void."""
    engine = campaign.engine
    return {
        TAG_ENGINE: f"{engine.name}: vLLM {engine.version}, {engine.build} build",
        TAG_BOOTS: _ran(evidence),
        TAG_VOIDED: str(voided(evidence)),
    }


def _ran(evidence: Evidence) -> str:
    """What gave data: how many boots and in which order, or how many pairs of a duet."""
    ran = sound(evidence)
    pairs = len({boot.pair for boot in ran if boot.pair})
    if pairs:
        return number_of(pairs, "pair")
    of_two = set(evidence.letters) <= set("AB")
    order = "".join(boot.letter for boot in ran) if of_two else evidence.letters[: len(ran)]
    return f"{len(ran)} {order}".strip()


def claim_tags(results: tuple[GateResult, ...]) -> dict[str, str]:
    """Each judged claim in the words of its line, without the verdict; none of its number without an interval."""
    return {f"{TAG_CLAIM_PREFIX}{_dotted(r)}": _claim(r) for r in results if r.judgement is not None}


def _dotted(result: GateResult) -> str:
    """A gate's name in a key; of several candidates `ARM GATE` is `ARM.GATE`."""
    return result.gate.replace(" ", ".")


def _claim(result: GateResult) -> str:
    assert result.judgement is not None
    if result.judgement.interval is None:
        return NO_ERROR_BAR
    _, _, told = result.line.strip().partition(" ")
    return GAPS.sub(" · ", told.strip()).replace(" · [", " [")


def fitting(tags: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The tags as any store takes them, and the texts that are too long for one, by the name of their artifact.

    Nothing is cut in silence (case G5): the tag of a long text shows its beginning, its length, its sha256 and where
    the whole of it is.
    """
    short, whole = dict[str, str](), dict[str, str]()
    for key, text in tags.items():
        clean = text.encode("utf-8", "replace").decode()
        if len(clean) > LONGEST_TAG:
            name = f"long/{hashlib.sha256(key.encode()).hexdigest()[:12]}.txt"
            digest = hashlib.sha256(clean.encode()).hexdigest()
            whole[name] = clean
            clean = f"{clean[:SHOWN_OF_LONG]}... ({len(clean)} characters, sha256 {digest}, whole in {name})"
        short[key] = clean
    return short, whole


def note(campaign: Campaign, results: tuple[GateResult, ...], verdict: Verdict) -> str:
    """The summary that the tracker's page shows, in Markdown."""
    lines = "\n".join(result.line for result in results)
    return f"## {verdict.value}: {campaign.name}\n\n{campaign.hypothesis}\n\n```\n{lines}\n```\n"


def boot_numbers(boot: BootRecord, verdict: Verdict, evidence: Evidence) -> Numbers:
    """A boot's phases in seconds, and its metrics where they belong to what was asked."""
    seconds = [(f"seconds.{phase}", value, 0) for phase, value in boot.seconds.items()]
    if not may_show_readings(verdict, evidence):
        return seconds
    return seconds + [(_metric(name, evidence), value, 0) for name, value in boot.metrics.items()]


def experiment_numbers(evidence: Evidence, results: tuple[GateResult, ...], verdict: Verdict) -> Numbers:
    """The gates' numbers, and each boot metric as a series over the boots, under another name than the boots use.

    A boot's reading stands at its place; of a place that was run again the void one stands in a series of its own.
    """
    found = [(f"{_dotted(result)}.{name}", value, 0) for result in results for name, value in result.numbers.items()]
    if may_show_effect(verdict, evidence):
        for boot in evidence.boots:
            series = SERIES.get(boot.status)
            named = [(_metric(name, evidence), value) for name, value in boot.metrics.items()]
            found += [(f"{series}.{name}", value, boot.index) for name, value in named if series]
    return found


def _metric(name: str, evidence: Evidence) -> str:
    """A reading's name, which says where it counts for nothing: no device's speed, or an acceptance that is made up."""
    made_up = evidence.synthetic and name.startswith(ACCEPTANCE)
    return f"synthetic.{name}" if made_up else speed_name(name, evidence.logic_only)


def boot_status(boot: BootRecord) -> Status:
    """A tainted boot ended well; one whose engine died or did something else did not (cases G4)."""
    return "FAILED" if boot.status in ("failed", "invalid") else "FINISHED"


def status(evidence: Evidence) -> Status:
    """FAILED by a boot, KILLED where planned boots are missing, else FINISHED."""
    if any(boot_status(boot) == "FAILED" for boot in evidence.boots):
        return "FAILED"
    measured = sum(boot.status == "ok" for boot in evidence.boots)
    return "FINISHED" if measured >= len(evidence.letters) else "KILLED"


def spans_ms(evidence: Evidence, end_ms: int) -> list[tuple[int, int]]:
    """Start and end of each boot, laid end to end up to `end_ms`: lengths and order are true, the gaps are not."""
    spans = []
    for boot in reversed(evidence.boots):
        start_ms = end_ms - round(1000 * _took_s(boot))
        spans.append((start_ms, end_ms))
        end_ms = start_ms
    return spans[::-1]


def _took_s(boot: BootRecord) -> float:
    """The whole boot; the sum of its phases where it has no total of its own."""
    took = boot.seconds.get("total", sum(boot.seconds.values()))
    return took if isfinite(took) else 0.0
