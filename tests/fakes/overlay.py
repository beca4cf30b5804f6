"""Overlays for the fake engine, pinned to its files as they are now: an edit of the fake never leaves one behind."""

import difflib
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

SITE = Path(__file__).parent / "site"
PYTHON = Path(__file__).parent / "python"
CPU = "vllm/platforms/cpu.py"
CORE = "vllm/v1/engine/core.py"
VARIABLE = "VLLM_GLM53_ASYNC_DFLASH"

FORCED_OFF = "    config.async_scheduling = False\n"
ADMITTED = f'    if os.environ.get("{VARIABLE}") != "1":\n        config.async_scheduling = False\n'
ONE_BATCH = ("vllm/v1/executor/abstract.py", "return 2 if config.async_scheduling else 1", "return 1")

ASYNC_KNOB = f"""
[[knob]]
name = "async_dflash"
variable = "{VARIABLE}"
values = ["0", "1"]
default = "0"

[knob.witness.0]
resolved = {{ async_scheduling = false }}
behaved = {{ batches_in_flight_max = {{ max = 1 }} }}

[knob.witness.1]
resolved = {{ async_scheduling = true }}
behaved = {{ batches_in_flight_max = {{ min = 2 }} }}
"""


@dataclass(frozen=True)
class Change:
    """A text in one of the fake's files and what takes its place; the text occurs there once."""

    path: str
    old: str
    new: str


def write_overlay(folder: Path, name: str, *changes: Change, knob: str = "") -> Path:
    """An overlay in folder/name, rightly pinned. Put `folder` on host.overlay_path."""
    home = folder / name
    home.mkdir(parents=True)
    blocks = []
    for path in dict.fromkeys(change.path for change in changes):
        before = (SITE / path).read_text(encoding="utf-8")
        after = before
        for change in (c for c in changes if c.path == path):
            assert after.count(change.old) == 1, f"{change.old!r} occurs {after.count(change.old)} times in {path}"
            after = after.replace(change.old, change.new)
        patch = path.replace("/", "-") + ".patch"
        (home / patch).write_text(_diff(before, after, path), encoding="utf-8")
        blocks.append(
            f'[[target.file]]\npath = "{path}"\npatch = "{patch}"\n'
            f'preimage_sha256 = "{_digest(before)}"\npostimage_sha256 = "{_digest(after)}"\n'
        )
    (home / "manifest.toml").write_text(_head() + knob + _target() + "\n".join(blocks), encoding="utf-8")
    return home


def async_dflash(folder: Path, name: str = "fake_async") -> Path:
    """The knob async_dflash as EXP-8 has it: with 1 the fake schedules asynchronously, two batches in flight."""
    return write_overlay(folder, name, Change(CPU, FORCED_OFF, ADMITTED), knob=ASYNC_KNOB)


def async_flag_only(folder: Path, name: str = "fake_async_flag_only") -> Path:
    """The same knob, but one batch stays in flight whatever the flag says."""
    return write_overlay(folder, name, Change(CPU, FORCED_OFF, ADMITTED), Change(*ONE_BATCH), knob=ASYNC_KNOB)


def slow_step(folder: Path, factor: float, name: str = "fake_slow_step") -> Path:
    """Every step takes `factor` times as long."""
    return write_overlay(folder, name, Change(CORE, "STEP_FACTOR = 1.0\n", f"STEP_FACTOR = {factor}\n"))


def _head() -> str:
    return (
        'why = "to test"\nowner = "tests"\nasync_safe = true\nasync_reason = "the fake has no draft ids"\n'
        '[upstream]\nlink = "none"\nstatus = "none"\ndrop_when = "never"\n'
    )


def _target() -> str:
    return '\n[[target]]\nversion = "0.0.0"\nbuilds = ["fake"]\n'


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _diff(before: str, after: str, path: str) -> str:
    lines = before.splitlines(keepends=True), after.splitlines(keepends=True)
    return "".join(difflib.unified_diff(*lines, f"a/{path}", f"b/{path}", n=0))
