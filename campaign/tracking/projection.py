"""What a campaign becomes in the tracker: names, tags, statuses and numbers. Pure: knows no tracker.

Tag texts fit any store: no lone surrogates, bounded. Metrics are (name, value, step), not yet filtered.
"""

import os
import platform
from collections.abc import Mapping
from math import isfinite
from typing import Literal

import psutil

from campaign.alphabet import to_key
from campaign.config import Campaign
from campaign.disclosure import may_show_effect, may_show_readings
from campaign.evidence import BootRecord, Evidence
from campaign.gates.base import GateResult
from campaign.names import TAG_ARM, TAG_CAMPAIGN, TAG_EXPERIMENT, TAG_GATE_PREFIX, TAG_LEVEL, TAG_VERDICT, speed_name
from verdict.words import Verdict

Status = Literal["FINISHED", "FAILED", "KILLED"]
Numbers = list[tuple[str, float, int]]
LONGEST_TAG = 4000  # MLflow takes 8000 and would raise over it
OWNER_HOST, OWNER_PID, OWNER_START = "owner.host", "owner.pid", "owner.start"


def boot_name(boot: BootRecord) -> str:
    """The boot as its folder is called: 05-B."""
    return f"{boot.index:02d}-{boot.letter}"


def common_tags(campaign_id: str, experiment: str) -> dict[str, str]:
    """What every run of a campaign carries: whose it is, and which process wrote it."""
    pid = os.getpid()
    owner = {
        OWNER_HOST: platform.node(),
        OWNER_PID: str(pid),
        OWNER_START: f"{psutil.Process(pid).create_time():.2f}",
    }
    return bounded({TAG_CAMPAIGN: campaign_id, TAG_EXPERIMENT: experiment} | owner)


def verdict_tags(results: tuple[GateResult, ...], verdict: Verdict) -> dict[str, str]:
    """The experiment's verdict, and each gate's."""
    gates = {f"{TAG_GATE_PREFIX}{result.gate}": result.verdict.value for result in results}
    return {TAG_VERDICT: verdict.value} | gates


def level_tag(level: Literal["campaign", "experiment", "boot"]) -> dict[str, str]:
    """Where in the tree a run stands."""
    return {TAG_LEVEL: level}


def boot_tags(boot: BootRecord) -> dict[str, str]:
    """A boot's arm, place, status and facts."""
    facts = {f"fact.{to_key(name)}": value for name, value in boot.facts.items()}
    reason = {"reason": boot.reason} if boot.reason else {}
    place = {"boot": boot_name(boot), "status": boot.status, "witness_ok": str(all(row.ok for row in boot.witness))}
    return bounded(level_tag("boot") | {TAG_ARM: boot.arm} | place | reason | facts)


def bounded(tags: Mapping[str, str]) -> dict[str, str]:
    """The tags with texts that any store takes."""
    clean = {key: text.encode("utf-8", "replace").decode() for key, text in tags.items()}
    return {key: text if len(text) <= LONGEST_TAG else f"{text[:LONGEST_TAG]}..." for key, text in clean.items()}


def note(campaign: Campaign, results: tuple[GateResult, ...], verdict: Verdict) -> str:
    """The summary that the tracker's page shows, in Markdown."""
    lines = "\n".join(result.line for result in results)
    return f"## {verdict.value}: {campaign.name}\n\n{campaign.hypothesis}\n\n```\n{lines}\n```\n"


def boot_numbers(boot: BootRecord, verdict: Verdict, evidence: Evidence) -> Numbers:
    """A boot's phases in seconds, and its metrics where they belong to what was asked."""
    seconds = [(f"seconds.{phase}", value, 0) for phase, value in boot.seconds.items()]
    if not may_show_readings(verdict, evidence):
        return seconds
    return seconds + [(speed_name(name, evidence.logic_only), value, 0) for name, value in boot.metrics.items()]


def experiment_numbers(evidence: Evidence, results: tuple[GateResult, ...], verdict: Verdict) -> Numbers:
    """The gates' numbers, and each boot metric as a series over the boots, under another name than the boots use."""
    found = [(f"{result.gate}.{name}", value, 0) for result in results for name, value in result.numbers.items()]
    if may_show_effect(verdict, evidence):
        boots = [(boot.index, name, value) for boot in evidence.boots for name, value in boot.metrics.items()]
        found += [(f"boots.{speed_name(name, evidence.logic_only)}", value, index) for index, name, value in boots]
    return found


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
