"""What an engine reads beside its staged package, as it is now: model, files that arguments name, libraries, variables.

Every boot's record holds these stamps, and a bracket goes on only while they are the same: a chat template that is
edited, a torch that is upgraded or another LD_PRELOAD between two boots would be measured as a difference of the arms.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from campaign.asked.arms import ResolvedArm, digest
from campaign.host.machine import this
from campaign.planning.plan import Plan

HASHED_BYTES = 16 * 2**20  # a larger file is known by its size and time
WRITTEN = ("download_dir",)  # a folder that the engine itself fills
UNSET = "unset"
SECRET_DIGITS = 4  # of a digest: another value is noticed, and no value can be guessed by it
SHOWN = 3
Stamps = dict[str, str]


def take(plan: Plan, arm: str, site: Path | None, shell: Mapping[str, str]) -> Stamps:
    """The stamps of an arm's engine, for the record of a boot. `site` is the folder that its libraries lie in."""
    resolved = plan.arms[arm]
    return {
        "machine": str(this()),
        "model": model(plan),
        "named_files": json.dumps(dict(_named_files(resolved)), sort_keys=True),
        "libraries": "" if site is None else _libraries(site),
        "passed": json.dumps(_passed(plan.run_id, resolved, shell), sort_keys=True),
    }


def changed(plan: Plan, then: Mapping[str, str], now: Stamps, site: Path | None) -> str:
    """What is no longer as it was, in words; empty where all is. What a record does not hold is not compared."""
    others = [name for name, stamp in now.items() if then.get(name, stamp) != stamp]
    return "; ".join(_SAY[name](plan, then[name], now[name], site) for name in others)


def model(plan: Plan) -> str:
    """What the model folders hold: name, size and time of every file. A model may be too big to hash at each boot."""
    of = plan.campaign.model
    folders = [Path(p) for p in (of.target, of.drafter) if p is not None and Path(p).is_dir()]
    return digest([_entry(f) for d in folders for f in sorted(d.rglob("*")) if f.is_file()])


def _entry(file: Path) -> tuple[str, int, int]:
    found = file.stat()
    return str(file), found.st_size, found.st_mtime_ns


def _named_files(arm: ResolvedArm) -> Iterator[tuple[str, str]]:
    """The files that serve arguments name, and the folders, each with what it holds."""
    for name, value in arm.serve:
        for path, is_argument in _paths(value, is_argument=True):
            with suppress(OSError, ValueError):  # a long text that begins like a path
                if path.is_file():
                    yield str(path), _of_file(path)
                elif is_argument and name not in WRITTEN and path.is_dir():
                    yield str(path), digest([_entry(f) for f in sorted(path.iterdir()) if f.is_file()])[:12]


def _paths(value: Any, *, is_argument: bool) -> Iterator[tuple[Path, bool]]:
    """Whatever looks like an absolute path in a value, also as NAME=PATH, and whether it is the argument itself."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for each in value:
            yield from _paths(each, is_argument=False)
    elif isinstance(value, str) and value[:1] in ("{", "["):
        with suppress(ValueError):
            yield from _paths(json.loads(value), is_argument=False)
    elif isinstance(value, str):
        path = value if value.startswith("/") else value.partition("=")[2]
        if path.startswith("/"):
            yield Path(path), is_argument


def _of_file(path: Path) -> str:
    if path.stat().st_size > HASHED_BYTES:
        return digest(_entry(path))[:12]
    return sha256(path.read_bytes()).hexdigest()[:12]


def _libraries(site: Path) -> str:
    """Every installed distribution with its version and when it was installed; not the bytes of each library."""
    records = [_entry(record) for record in sorted(site.glob("*.dist-info/RECORD"))]
    names = sorted(entry.name for pattern in ("*.dist-info", "*.egg-info") for entry in site.glob(pattern))
    paths = [(file.name, file.read_text("utf-8", "replace")) for file in sorted(site.glob("*.pth"))]
    return digest([records, names, paths])


def _passed(run_id: str, arm: ResolvedArm, shell: Mapping[str, str]) -> dict[str, str]:
    """The variables that are passed on from the caller, each by a few digits of a digest of its value."""
    return {name: _few_digits(f"{run_id}\0{name}\0{shell[name]}") if name in shell else UNSET for name in arm.passed}


def _few_digits(text: str) -> str:
    return sha256(text.encode(errors="surrogateescape")).hexdigest()[:SECRET_DIGITS]


def _say_machine(_plan: Plan, then: str, now: str, _site: Path | None) -> str:
    return f"the boots so far ran on another machine ({then}; this is {now}): what two hosts give is not comparable"


def _say_model(plan: Plan, _then: str, _now: str, _site: Path | None) -> str:
    of = plan.campaign.model
    return f"files of the model changed ({of.target}, {of.drafter}); boots of two models make no bracket"


def _say_files(_plan: Plan, then: str, now: str, _site: Path | None) -> str:
    return f"files that serve arguments name changed: {', '.join(_others(then, now))}; put them back"


def _say_libraries(_plan: Plan, _then: str, _now: str, site: Path | None) -> str:
    entries = [] if site is None else sorted(site.glob("*.dist-info"), key=lambda e: e.stat().st_mtime, reverse=True)
    newest = ", ".join(entry.name.removesuffix(".dist-info") for entry in entries[:SHOWN])
    return f"packages beside the engine changed in {site} (newest: {newest}); install the old ones"


def _say_passed(_plan: Plan, then: str, now: str, _site: Path | None) -> str:
    names = ", ".join(_others(then, now))
    return f"engine.pass_env: {names} has another value in this shell; give it the old one"


def _others(then: str, now: str) -> list[str]:
    """The keys whose values are not the same."""
    before, after = json.loads(then), json.loads(now)
    return [key for key in sorted({*before, *after}) if before.get(key) != after.get(key)]


_SAY = {
    "machine": _say_machine,
    "model": _say_model,
    "named_files": _say_files,
    "libraries": _say_libraries,
    "passed": _say_passed,
}
