"""A bracket record: one claim with the readings it was judged on, enough to judge it again from the file alone.

A run writes one for each judged claim (runs/ID/records/CLAIM.json); people write their own (docs/inspect.md). It is
judged by the functions that judge a run, so its verdict, its line and its exit code are those of the run.
Source: statistics.md section 4, "Record to keep".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from campaign.errors import ConfigError
from campaign.evidence import BootRecord, Evidence, Status
from campaign.limits import RANGES
from campaign.names import BASE, CANDIDATE, UNLIKE
from campaign.planning.registered import LOWER_IS_BETTER
from campaign.typed import items, known, mapping, number, numbers, text, texts, whole, word
from verdict.claims import Claim, ClaimKind, Direction
from verdict.errors import VerdictError
from verdict.fit import Scale
from verdict.history import History
from verdict.looks import Looks

SCHEMA = 1
BOUNDS = {
    ClaimKind.superiority: ("gate_pct", "gate_pp"),
    ClaimKind.equivalence: ("margin_pct", "margin_pp"),
    ClaimKind.non_inferiority: ("margin_pct", "margin_pp"),
    ClaimKind.no_difference: ("", ""),
}
KEYS = (
    "schema", "claim", "letters", "readings", "sessions", "pairs", "history", "paired_differences",
    "looks", "look", "level", "metrics", "limits", "void", "logic_only", "synthetic", "unlike", "sittings",
    "registered", "boots", "judged",
)  # fmt: skip
CLAIM_KEYS = (
    "name", "metric", "kind", "direction", "scale", "gate_pct", "gate_pp", "margin_pct", "margin_pp",
    "ceiling_pct", "expect_pct",
)  # fmt: skip
DRIFT_PCT, PREFIX_HITS_PP = "drift_pct", "prefix_hits_pp"
LIMITS = (DRIFT_PCT, PREFIX_HITS_PP)
VOID_KEYS = ("pos", "after", "arm", "letter", "reading", "reason")


@dataclass(frozen=True)
class Record:
    """One claim and its readings, one a boot in run order, in the metric's unit; A is base, B the candidate.

    `pairs` numbers a duet's pairs, `sessions` sittings, or sessions of several hosts. `looks` are the planned looks in
    boots, `look` the one (from 1) that is judged, 0 for the first that decides; `level` is the two-sided level of the
    interval where it is not the kind's own. `metrics` are other readings of the same boots, `limits` those of the gate.
    `void` are boots that the environment tainted; `synthetic` is the label of an acceptance that the engine made up;
    `unlike` says why two engines beside each other are not alike here, `sittings` where the session was broken off.
    `told` is what else was written down; it is shown and decides nothing.
    """

    claim: Claim
    letters: str
    readings: tuple[float, ...]
    sessions: tuple[int, ...] | None = None
    pairs: tuple[int, ...] | None = None
    history: History | None = None
    paired_differences: tuple[float, ...] | None = None
    looks: tuple[int, ...] = ()
    look: int = 0
    level: float | None = None
    metrics: dict[str, tuple[float, ...]] = field(default_factory=dict)
    limits: dict[str, Any] = field(default_factory=dict)  # numbers; None for what is not looked at
    void: tuple[tuple[int, BootRecord], ...] = ()  # each with how many sound boots ran before it
    logic_only: str = ""
    synthetic: str = ""
    unlike: str = ""
    sittings: tuple[str, ...] = ()
    told: dict[str, Any] = field(default_factory=dict)

    def evidence(self, looks: Looks | None = None, look: int = 1) -> Evidence:
        """What a look judges: the boots up to it, each with its readings, beside the void ones."""
        n = looks.boots[look - 1] if looks else len(self.letters)
        pairs, sessions = self.pairs or (0,) * n, self.sessions or (0,) * n
        facts = {UNLIKE: self.unlike} if self.unlike else {}
        boots = []
        for at in range(n + 1):
            session = sessions[min(at, n - 1)]
            boots += [replace(boot, session=session) for after, boot in self.void if after == at]
            if at < n:
                readings, more = self._readings(at), {"pair": pairs[at], "session": session, "facts": facts}
                boots.append(_boot(at + 1, self.letters[at], "ok", readings, **more))
        return Evidence(
            "record",
            tuple(boots),
            {self.claim.name: self.claim},
            self.letters[:n],
            self.history,
            self.logic_only,
            looks,
            look,
            synthetic=self.synthetic,
            level=self.level,
            sittings=self.sittings,
        )

    def _readings(self, at: int) -> dict[str, float]:
        return {name: found[at] for name, found in self.metrics.items()} | {self.claim.metric: self.readings[at]}


def _boot(index: int, letter: str, status: Status, metrics: dict[str, float], **more: Any) -> BootRecord:
    if letter == "A":
        return BootRecord(index, "A", BASE, status, metrics=metrics, **more)
    return BootRecord(index, "B", CANDIDATE, status, metrics=metrics, **more)


def read(data: Mapping[str, Any], where: str) -> Record:
    """A record from its JSON. Raises ConfigError with the key, what was found and what is wanted."""
    known(data, KEYS, where)
    if data.get("schema", SCHEMA) != SCHEMA:
        raise ConfigError(f"{where}: schema is {data['schema']!r}, this version reads {SCHEMA}")
    claim = _claim(mapping(data, "claim", where), f"{where}: claim")
    letters = data.get("letters")
    if not isinstance(letters, str) or not letters or set(letters) - {"A", "B", " "}:
        raise ConfigError(f"{where}: letters is {letters!r}; wanted A and B in run order, for example ABBABAAB")
    letters = letters.replace(" ", "")
    readings = numbers(data, "readings", where) or ()
    if len(readings) != len(letters):
        raise ConfigError(f"{where}: readings: found {len(readings)}, wanted one a letter, {len(letters)}")
    return Record(
        claim=claim,
        letters=letters,
        readings=readings,
        sessions=whole(data, "sessions", where, len(letters)),
        pairs=whole(data, "pairs", where, len(letters)),
        history=_history(data, claim, where),
        paired_differences=numbers(data, "paired_differences", where),
        looks=whole(data, "looks", where) or (),
        look=_look(data, where),
        level=_level(data, where),
        metrics=_metrics(data, where, len(letters)),
        limits=_limits(data, where),
        void=tuple(_void(one, claim, where) for one in items(data, "void", where) or []),
        logic_only=text(data, "logic_only", where),
        synthetic=text(data, "synthetic", where),
        unlike=text(data, "unlike", where),
        sittings=texts(data, "sittings", where),
        told={key: data[key] for key in ("registered", "boots", "judged") if key in data},
    )


def plain(record: Record) -> dict[str, Any]:
    """The inverse of `read`."""
    claim, history = record.claim, record.history
    unit = "pct" if claim.scale is Scale.LOG else "pp"
    found = {
        "schema": SCHEMA,
        "claim": _plain_claim(claim),
        "letters": record.letters,
        "readings": list(record.readings),
        "sessions": record.sessions and list(record.sessions),
        "pairs": record.pairs and list(record.pairs),
        "history": history and {f"sd_{unit}": history.s0 * (100 if unit == "pct" else 1), "df": history.nu0},
        "paired_differences": record.paired_differences and list(record.paired_differences),
        "looks": list(record.looks) or None,
        "look": record.look or None,
        "level": record.level,
        "metrics": {name: list(found) for name, found in record.metrics.items()} or None,
        "limits": record.limits or None,
        "void": [_plain_void(after, boot, claim) for after, boot in record.void] or None,
        "logic_only": record.logic_only or None,
        "synthetic": record.synthetic or None,
        "unlike": record.unlike or None,
        "sittings": list(record.sittings) or None,
    }
    return {key: value for key, value in found.items() if value is not None} | record.told


def _plain_claim(claim: Claim) -> dict[str, Any]:
    pct, pp = BOUNDS[claim.kind]
    bound = pct if claim.scale is Scale.LOG else pp
    found = {
        "name": claim.name,
        "metric": claim.metric,
        "kind": claim.kind.value,
        "direction": claim.direction.value,
        "scale": claim.scale.value,
        bound: claim.bound,
        "ceiling_pct": claim.ceiling_pct,
        "expect_pct": claim.expect_pct and list(claim.expect_pct),
    }
    return {key: value for key, value in found.items() if key and value is not None}


def _plain_void(after: int, boot: BootRecord, claim: Claim) -> dict[str, Any]:
    reading = {"reading": boot.metrics[claim.metric]} if claim.metric in boot.metrics else {}
    return {"pos": boot.index, "after": after, "letter": boot.letter, "reason": boot.reason} | reading


def _claim(data: Mapping[str, Any], where: str) -> Claim:
    """A claim as registered; its metric says how it is compared and which way is better, unless it says so itself."""
    known(data, CLAIM_KEYS, where)
    metric, kind = text(data, "metric", where), word(data, "kind", ClaimKind, where)
    if not metric:
        raise ConfigError(f"{where}: metric is missing; write for example step_per_s or acceptance_pos1_pp")
    scale = word(data, "scale", Scale, where, Scale.LINEAR if metric.endswith("_pp") else Scale.LOG)
    way = Direction.TWO_SIDED if scale is Scale.LINEAR else Direction.HIGHER
    way = Direction.LOWER if metric in LOWER_IS_BETTER else way
    try:
        return Claim(
            name=text(data, "name", where) or metric,
            metric=metric,
            kind=kind,
            bound=_bound(data, kind, scale, where),
            scale=scale,
            direction=word(data, "direction", Direction, where, way),
            ceiling_pct=number(data, "ceiling_pct", where),
            expect_pct=_band(data, where),
        )
    except VerdictError as error:
        raise ConfigError(f"{where}: {error}") from error


def _bound(data: Mapping[str, Any], kind: ClaimKind, scale: Scale, where: str) -> float:
    wanted = BOUNDS[kind][scale is Scale.LINEAR]
    given = {key for keys in BOUNDS.values() for key in keys if key and data.get(key) is not None}
    if given != ({wanted} if wanted else set()):
        raise ConfigError(
            f"{where}: a {kind.value} claim on this metric takes {wanted or 'no bound'}, found "
            f"{', '.join(sorted(given)) or 'none'}"
        )
    return (number(data, wanted, where) or 0.0) if wanted else 0.0


def _band(data: Mapping[str, Any], where: str) -> tuple[float, float] | None:
    found = numbers(data, "expect_pct", where)
    if found is not None and len(found) != len(("low", "high")):
        raise ConfigError(f"{where}: expect_pct is {list(found)}; wanted [low, high] in per cent")
    return None if found is None else (found[0], found[1])


def _history(data: Mapping[str, Any], claim: Claim, where: str) -> History | None:
    if data.get("history") is None:
        return None
    found, unit = mapping(data, "history", where), "sd_pct" if claim.scale is Scale.LOG else "sd_pp"
    known(found, (unit, "df"), f"{where}: history")
    sd, df = number(found, unit, f"{where}: history"), found.get("df")
    if sd is None or not isinstance(df, int) or isinstance(df, bool):
        raise ConfigError(f"{where}: history is {dict(found)}; wanted {unit} of one boot and df, a whole number")
    try:
        return History(sd / 100 if claim.scale is Scale.LOG else sd, df)
    except VerdictError as error:
        raise ConfigError(f"{where}: history: {error}") from error


def _void(found: Any, claim: Claim, where: str) -> tuple[int, BootRecord]:
    if not isinstance(found, dict) or not isinstance(found.get("pos"), int):
        raise ConfigError(f"{where}: void holds {found!r}; wanted maps of pos, letter, reason and reading")
    known(found, VOID_KEYS, f"{where}: void")
    reading = number(found, "reading", f"{where}: void")
    letter = "B" if found.get("letter") == "B" or found.get("arm") == CANDIDATE else "A"
    metrics = {} if reading is None else {claim.metric: reading}
    reason = text(found, "reason", f"{where}: void")
    after = number(found, "after", f"{where}: void")
    boot = _boot(found["pos"], letter, "void", metrics, reason=reason)
    return (found["pos"] - 1 if after is None else int(after)), boot


def _level(data: Mapping[str, Any], where: str) -> float | None:
    found = number(data, "level", where)
    if found is not None and not 0 < found < 1:
        raise ConfigError(f"{where}: level is {found}; wanted the two-sided level of the interval, for example 0.978")
    return found


def _look(data: Mapping[str, Any], where: str) -> int:
    found = number(data, "look", where) or 0.0
    planned = data.get("looks") or []
    if found and not (found.is_integer() and 1 <= found <= len(planned)):
        raise ConfigError(f"{where}: look is {found:g}, wanted one of the {len(planned)} looks")
    return int(found)


def _metrics(data: Mapping[str, Any], where: str, length: int) -> dict[str, tuple[float, ...]]:
    if data.get("metrics") is None:
        return {}
    named = mapping(data, "metrics", where)
    found = {name: numbers(named, name, f"{where}: metrics") or () for name in named}
    if short := [name for name, values in found.items() if len(values) != length]:
        raise ConfigError(f"{where}: metrics: {short[0]}: found {len(found[short[0]])}, wanted one a boot, {length}")
    return found


def _limits(data: Mapping[str, Any], where: str) -> dict[str, float | None]:
    if data.get("limits") is None:
        return {}
    named = mapping(data, "limits", where)
    known(named, LIMITS, f"{where}: limits")
    found = {name: number(named, name, f"{where}: limits") for name in named}
    for name, limit in found.items():
        low, high = RANGES[f"gates.step_rate.{name}"]
        if limit is not None and not low <= limit <= high:
            raise ConfigError(f"{where}: limits: {name} is {limit:g}, wanted {low:g} to {high:g}, or null for no look")
    return found
