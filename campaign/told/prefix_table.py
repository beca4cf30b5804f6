"""What each boot showed of its prefix cache, cold and warm, as a table of the report."""

from statistics import median

from campaign.evidence import BootRecord, Evidence, PrefixPass, pooled
from campaign.gates.footing import boot_name
from campaign.names import logic_only_label
from campaign.told.view import Table

ABSENT = "-"
HEAD = ("boot", "pass", "hits of tokens looked up", "pos1", "pos2", "tokens a step", "TTFT ms (median)")


def prefix_cache(evidence: Evidence) -> Table | None:
    """Two rows a boot; None where no prompts with a shared prefix were asked."""
    asked = [boot for boot in evidence.boots if boot.prefix]
    if not asked:
        return None
    shared = min(boot.prefix.shared_tokens for boot in asked if boot.prefix)
    note = f"The shortest shared prefix is {shared} tokens. TTFT by the client's clock, a median over prompts"
    mark = logic_only_label(evidence.logic_only)
    rows = tuple(row for boot in asked for row in _rows(boot, quiet=bool(mark)))
    return Table("Prefix cache", HEAD, rows, f"{note}; {mark}." if mark else f"{note}.")


def _rows(boot: BootRecord, *, quiet: bool) -> list[tuple[str, ...]]:
    assert boot.prefix is not None
    passes = (("cold", boot.prefix.cold), ("warm", boot.prefix.warm))
    return [(boot_name(boot), name, *_cells(one, quiet=quiet)) for name, one in passes]


def _cells(one: PrefixPass, *, quiet: bool) -> tuple[str, ...]:
    counts = pooled(one.counts.values())
    rates = counts.rates_pp()[:2] if counts else ()
    hits = ABSENT if one.hit_pct is None else f"{one.hit_pct:.1f} % ({one.hits}/{one.queries})"
    length = f"{counts.acceptance_length:.3f}" if counts and counts.drafts else ABSENT
    first = f"{1000 * median(one.ttft_s.values()):.1f}" if one.ttft_s and not quiet else ABSENT
    return (hits, *([f"{rate:.1f} %" for rate in rates] + [ABSENT] * (2 - len(rates))), length, first)
