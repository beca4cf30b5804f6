"""The noise registry: what each valid bracket of a host left, a JSON line each, and what that says of the next one.

Rows of another host, GPU, driver, engine, model, workload, metric or kind of bracket are never mixed (statistics.md
section 1.12).
"""

import fcntl
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from math import isfinite
from pathlib import Path
from typing import Any, get_args, get_type_hints

from campaign.asked.arms import digest
from campaign.config import Campaign
from campaign.errors import ConfigError
from campaign.host.machine import Machine, this
from campaign.names import BASE, STEP_PER_S
from campaign.prompting.checks import Prompt
from verdict.errors import VerdictError
from verdict.history import LEAST_NU0, History
from verdict.registry import Residuals, aa_calibration, pooled
from verdict.words import number_of

DAYS = 30.0
DAY_S = 86_400.0
DIGITS = 12
MOST = 1e6  # of a row's residuals, and of its degrees of freedom: a row beyond is none that a bracket left
SAME, DIFFERS = "same", "differs"  # how an A/A bracket came out


@dataclass(frozen=True)
class Key:
    """What makes two brackets comparable in their noise."""

    host: str
    cpu: str
    gpu: str
    driver: str
    engine: str
    model: str
    workload: str
    metric: str
    kind: str  # boots | duet


@dataclass(frozen=True)
class Row:
    """What one bracket left. rss, s2 and slope in ln (points for a metric in points); sd's in ln; None: not known."""

    key: Key
    run_id: str
    time_unix_s: float
    schedule: str
    rss: float
    df: int
    s2: float
    slope: float  # a boot
    requests: int | None = None  # a boot
    sigma_w: float | None = None
    sigma_boot: float | None = None
    rho: float | None = None
    best_requests: float | None = None
    aa: str | None = None  # how it came out, where both arms were alike

    def plain(self) -> dict[str, Any]:
        """One flat map, for people too."""
        return {"schema": 1, **asdict(self.key), **{k: v for k, v in asdict(self).items() if k != "key"}}


@dataclass(frozen=True)
class Known:
    """What a host is known for; `origin` says by what, or why it is not."""

    history: History | None = None
    origin: str = "this host has no history"
    remarks: tuple[str, ...] = ()

    def plain(self) -> dict[str, Any]:
        """For plan.json: a run that is resumed is judged by what it began with."""
        return asdict(self)


def from_plain(data: Any) -> Known | None:
    """The inverse of `Known.plain`; None where there is none. Raises ConfigError for what is none of ours."""
    if data is None:
        return None
    try:
        given = data["history"]
        history = None if given is None else History(float(given["s0"]), int(given["nu0"]))
        return Known(history, str(data["origin"]), tuple(str(remark) for remark in data["remarks"]))
    except (KeyError, TypeError, ValueError, VerdictError) as error:
        raise ConfigError(f"plan.json: history is none of ours ({error}); put it back, or start a new run") from error


def key_of(campaign: Campaign, decode: Iterable[Prompt], metric: str, machine: Machine | None = None) -> Key:
    """The key of an experiment's brackets on a machine; this one unless another is given."""
    where, engine, model, workload = machine or this(), campaign.engine, campaign.model, campaign.workload
    drafted: list[object] = [model.target, model.drafter, model.method, model.num_speculative_tokens]
    drafted += [] if model.synthetic_acceptance_length is None else [model.synthetic_acceptance_length]
    served = [engine.serve, campaign.arms[BASE].serve]
    sent = {name: value for name, value in vars(workload).items() if name not in ("name", "prompts")}
    return Key(
        **asdict(where),
        engine=f"{engine.version} {engine.build} {engine.name} {digest(served)[:DIGITS]}",
        model=f"{model.name} {digest(drafted)[:DIGITS]}",
        workload=f"{workload.name} {digest([sent, [str(prompt) for prompt in decode]])[:DIGITS]}",
        metric=metric,
        kind=campaign.bracket.kind.value,
    )


def known(campaign: Campaign, decode: tuple[Prompt, ...], now_s: float | None = None) -> Known:
    """What this host is known for with this engine, model and workload; host.history_sd_pct goes over its registry.

    Raises ConfigError for a history that is none.
    """
    host = campaign.host
    if host.history_sd_pct is not None:
        try:
            given = History(s0=host.history_sd_pct / 100.0, nu0=host.history_df)
        except VerdictError as error:
            raise ConfigError(f"host.history_sd_pct, host.history_df: {error}") from error
        return Known(given, f"host.history_sd_pct: boot sd {host.history_sd_pct:g} % on {host.history_df} df")
    if host.registry is None:
        return Known()
    rows, broken = read(Path(host.registry))
    since_s = (time.time() if now_s is None else now_s) - DAYS * DAY_S
    wanted = key_of(campaign, decode, STEP_PER_S)
    mine = [row for row in rows if row.time_unix_s >= since_s]
    return _known([row for row in mine if row.key == wanted], _aa(mine, wanted), broken, _sent(campaign, decode))


def _sent(campaign: Campaign, decode: tuple[Prompt, ...]) -> int:
    return len(decode) * campaign.workload.repeats


def _known(rows: list[Row], aa: tuple[str, ...], broken: tuple[str, ...], requests: int) -> Known:
    df = sum(row.df for row in rows)
    history = pooled([Residuals(row.rss, row.df) for row in rows])
    of = f"{df} df, {len(rows)} bracket{'' if len(rows) == 1 else 's'} of this host in {DAYS:.0f} days"
    if history is not None:
        origin = f"registry: boot sd {100 * history.s0:.2g} % on {of}"
    elif rows:
        why = "nothing ever varied" if df >= LEAST_NU0 else f"{LEAST_NU0} df are needed"
        origin = f"this host has no history yet: {of}, {why}"
    else:
        origin = "this host has no history of this engine, model and workload"
    return Known(history, origin, (*_requests(rows, requests), *aa, *broken))


def _requests(rows: list[Row], requests: int) -> tuple[str, ...]:
    """Whether the window's length is far from what makes the most of the time (section 1.10)."""
    best = next((row.best_requests for row in reversed(rows) if row.best_requests), None)
    if best is None or best / 2 <= requests <= best * 2:
        return ()
    advice = "past that buy a boot, not requests" if requests > best else "more would sharpen a boot (workload.repeats)"
    sent = f"{number_of(requests, 'request')} a boot"
    return (f"{sent}; about {max(1, round(best))} make the most of the time here: {advice}",)


def _aa(rows: list[Row], wanted: Key) -> tuple[str, ...]:
    """How the A/A brackets of this host came out, whatever they were of."""
    mine = [row for row in rows if row.aa and (row.key.host, row.key.kind) == (wanted.host, wanted.kind)]
    if not mine:
        return ()
    found = aa_calibration(sum(row.aa == DIFFERS for row in mine), len(mine))
    share = f"{found.differing} of {found.brackets} A/A claims of this host differ"
    bounds = f"5 % would; 95 % bounds {100 * found.low:.0f}..{100 * found.high:.0f} %"
    if found.is_off:
        return (f"{share} ({bounds}): find out why before any other verdict of this host is believed",)
    return (f"{share} ({bounds})",)


def read(file: Path) -> tuple[list[Row], tuple[str, ...]]:
    """The rows, and a sentence for each line that is none; a line that a kill cut short is left out silently."""
    rows, broken = [], []
    for number, line in enumerate(_lines(file), 1):
        try:
            rows.append(_row(json.loads(line)))
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
            broken.append(f"{file}:{number} is no row of the registry ({error}): left out")
    return rows, tuple(broken)


def _lines(file: Path) -> Iterator[str]:
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    yield from (line for line in text.split("\n")[:-1] if line.strip())


def _row(data: Mapping[str, Any]) -> Row:
    """Raises KeyError for what is missing, ValueError for a value of another kind or beyond reason."""
    key = Key(**{entry.name: str(data[entry.name]) for entry in fields(Key)})
    rest = {entry.name: data[entry.name] for entry in fields(Row) if entry.name != "key"}
    for name, hint in get_type_hints(Row).items():
        if name != "key" and not _is_of(rest[name], get_args(hint) or (hint,)):
            raise ValueError(f"{name} is {str(rest[name])[:40]!r}")
    found = Row(key, **rest)
    if not (0 <= found.rss <= MOST and 1 <= found.df <= MOST and found.time_unix_s >= 0):
        raise ValueError(f"rss {found.rss} on {found.df} df")
    if found.aa not in (SAME, DIFFERS, None):
        raise ValueError(f"aa is {found.aa[:40]!r}")
    return found


def _is_of(value: Any, kinds: tuple[type, ...]) -> bool:
    """A truth value is no number, a whole number is one too, and a number is finite."""
    if isinstance(value, bool) or not isinstance(value, (*kinds, int) if float in kinds else kinds):
        return False
    return not isinstance(value, int | float) or isfinite(value)


def add(file: Path, rows: Iterable[Row]) -> int:
    """Append what is not there yet, under the file's lock, and flush it; returns how many. Raises OSError.

    A run's metric is there once, however often the run is resumed or imported.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a+b") as shared:
        fcntl.flock(shared, fcntl.LOCK_EX)
        there = {(row.run_id, row.key.metric) for row in read(file)[0]}
        new = [row for row in rows if (row.run_id, row.key.metric) not in there]
        shared.seek(0)
        shared.truncate(shared.read().rfind(b"\n") + 1)
        text = "".join(json.dumps(row.plain(), ensure_ascii=False, allow_nan=False) + "\n" for row in new)
        shared.write(text.encode())
        shared.flush()
        os.fsync(shared.fileno())
    return len(new)
