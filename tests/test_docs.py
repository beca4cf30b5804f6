"""Every command line that a page or the help shows is composed here, so that none of them can abort."""

import re
import shlex
from pathlib import Path

import pytest

from campaign import door, manual
from campaign.planning.plan import make
from overlays.__main__ import HELP as OVERLAYS_HELP
from overlays.__main__ import _parser

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / name for name in ("README.md", "RUNBOOK.md", "CONTRIBUTING.md")]
PAGES += sorted((ROOT / "overlays").rglob("README.md")) + sorted((ROOT / "docs").rglob("*.md"))
COMMAND = re.compile(r"(?:^|`|\s)((?:python -m (?:campaign|overlays)|make)(?: [^`\n]*)?)(?=`|$)", re.M)
PLACEHOLDERS = ("<", "EXPERIMENT", "NAME", "...", "UPPER")


def shown(text: str) -> list[str]:
    """The command lines of a text, without comments and without lines that only show a form."""
    fenced = "\n".join(re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S))
    inline = "\n".join(
        f"`{code}`" for code in re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))
    )
    found = [match.strip() for match in COMMAND.findall(fenced + "\n" + inline)]
    lines = [re.split(r"\s{2,}|\s#", line)[0].strip() for line in found]
    return [line for line in dict.fromkeys(lines) if not any(p in line for p in PLACEHOLDERS)]


def all_shown() -> list[tuple[str, str]]:
    rows = [(str(page.relative_to(ROOT)), line) for page in PAGES for line in shown(page.read_text(encoding="utf-8"))]
    helped = [("campaign --help", f"python -m campaign {line}") for line in help_lines()]
    listed = [("overlays --help", line) for line in shown(f"```\n{OVERLAYS_HELP}\n```")]
    return rows + helped + listed


def help_lines() -> list[str]:
    """What `--help` shows, one command line each."""
    words = re.findall(
        r"^  ((?:exp|bracket|workload|arms|claims|host|dry_run|boot)[^ ]*=?[^ ]*(?: exp=\S+ arm=\S+)?)",
        manual.HELP,
        re.M,
    )
    return [w if "exp=" in w else f"exp=exp8 {w}" for w in words if not any(p in w for p in PLACEHOLDERS)]


@pytest.mark.parametrize(("page", "line"), all_shown(), ids=lambda value: str(value)[:70])
def test_a_documented_command_line_does_what_it_says_up_to_the_first_boot(page: str, line: str) -> None:
    assert page
    words = shlex.split(line)
    if words[0] == "make":
        check_make(words[1:])
    elif words[2] == "overlays":
        assert _parser().parse_args(words[3:]).verb == words[3]
    else:
        check_campaign(words[3:])


def check_make(words: list[str]) -> None:
    """The target and the variables exist in the Makefile."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for word in words:
        name = word.split("=")[0]
        assert re.search(rf"^{name}\b.*(?:\?=|:)", makefile, re.M), f"make knows no {name}"


def check_campaign(words: list[str]) -> None:
    """It composes, and a plan can be made of it."""
    if not words or {"--help", "--cfg", "--info"} & set(words):
        return
    verb, rest = (words[0], words[1:]) if manual.is_verb(words[0]) else ("run", words)
    if verb in manual.ON_A_RUN:
        assert rest == ["RUN_ID"] or (
            verb == "inspect" and all((ROOT / word).is_file() for word in rest if word != "--json")
        )
        return
    campaign = door.compose(rest)
    assert campaign is not None
    assert make(campaign, "documented").boots


def test_the_pages_show_the_commands_that_people_need() -> None:
    everything = " ".join(line for _, line in all_shown())
    for wanted in ("make run EXP=exp8", "make test", "exp=aa", "boot exp=exp8 arm=candidate", "resume RUN_ID"):
        assert wanted in everything
