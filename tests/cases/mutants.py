"""`make mutants`: does a family of tests notice when the product does the wrong thing? One mistake a family, in a copy.

Takes minutes and is no part of `make test`; the tests that boot the real engine are left out. A mutant whose text no
longer stands in its file is an error: the list must follow the code.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

from bank import ROOT, held, no_family

FILE = Path(__file__).with_name("mutants.toml")
ENVIRONMENTS = (".venv", ".venv-engine")  # linked, not copied
SOURCES = "build/engine-sources"  # what the rebase tests read, linked too
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
ENOUGH = "--maxfail=3"  # a family that is red thrice has noticed
RED, GREEN = 1, 0  # pytest's exit codes


@dataclass(frozen=True)
class Mutant:
    """One mistake: `find` in `file` becomes `put`; the tests of `family` must notice."""

    family: str
    file: str
    find: str
    put: str
    why: str


def mutants() -> list[Mutant]:
    """All of mutants.toml."""
    return [Mutant(**entry) for entry in tomllib.loads(FILE.read_text(encoding="utf-8")).get("mutant", [])]


def copy_checkout(into: Path) -> None:
    """The files that git knows or would take, with the environments as links."""
    listed = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True, text=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, into / name)
    for name in ENVIRONMENTS:
        (into / name).symlink_to(ROOT / name)
    if (ROOT / SOURCES).is_dir():
        (into / SOURCES).parent.mkdir(exist_ok=True)
        (into / SOURCES).symlink_to(ROOT / SOURCES)


def make(mutant: Mutant, checkout: Path) -> None:
    """Make the mistake. Raises ValueError unless its text stands there exactly once."""
    file = checkout / mutant.file
    text = file.read_text(encoding="utf-8")
    if text.count(mutant.find) != 1:
        raise ValueError(f"{mutant.file} holds {mutant.find!r} {text.count(mutant.find)} times, wanted once")
    file.write_text(text.replace(mutant.find, mutant.put), encoding="utf-8")


def noticed_by(mutant: Mutant, tests: list[str]) -> list[str]:
    """The tests that turn red in a copy with the mistake. Raises RuntimeError when they could not be run."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        checkout = Path(folder)
        copy_checkout(checkout)
        make(mutant, checkout)
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "--tb=no", ENOUGH, "-m", "not engine", "-p", "no:cacheprovider",
             *tests],
            cwd=checkout, env=os.environ | {"PYTHONPATH": folder}, capture_output=True, text=True, check=False,
        )  # fmt: skip
    if done.returncode not in (RED, GREEN):
        raise RuntimeError(f"the tests did not run: {(done.stdout + done.stderr)[-2000:]}")
    return sorted(set(FAILED.findall(done.stdout)))


def main(families: list[str]) -> int:
    """Try each mutant; 1 when one goes unnoticed, 2 for a family that has none."""
    if strange_family := no_family(families, {mutant.family for mutant in mutants()}):
        print(strange_family)
        return 2
    by_case, unnoticed = held(), 0
    for mutant in mutants():
        if families and mutant.family not in families:
            continue
        tests = sorted({name for case, names in by_case.items() if case[0] == mutant.family for name in names})
        started = time.monotonic()
        red = noticed_by(mutant, tests)
        unnoticed += not red
        print(f"{mutant.family}  {mutant.file}: {mutant.why}")
        print(f"   {len(tests)} tests, {len(red)} red after {time.monotonic() - started:.0f} s", flush=True)
        for name in red or ["NOBODY NOTICED"]:
            print(f"     {name}", flush=True)
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
