"""What was probably meant by a word that the door does not take, and Hydra's words in ours."""

import re
from dataclasses import fields
from typing import Any

from campaign import manual
from campaign.asked import knobs, pinned, variables
from campaign.asked.origins import quoted
from campaign.config import ROOT, Arm, Campaign, ClaimConfig, to_plain
from campaign.limits import near
from campaign.names import BASE, CANDIDATE

KEY = re.compile(r"Could not override '([^']+)'")
ENTRIES = {"claims": ClaimConfig, "arms": Arm}  # maps whose entries have a schema of their own
SCHEDULE = re.compile(r"[AB]+")
TYPES = {"Integer": "a whole number", "Float": "a number", "bool": "true or false"}
MERGING = re.compile(r"^Error merging override \+*([^=\s]+)=(.*)$", re.DOTALL)
CONVERT = re.compile(r"Value '(.*?)' (?:of type '\w+' could not be converted to|is not a valid) (\w+)")
NO_TEXT = re.compile(r"Cannot convert '(list|dict|List|Dict)(?:Config)?' to string: '(.*)'")
NO_ARM = "is not a subclass of Arm"  # what Hydra says of an arm that there is not
KINDS = {"list": "the list", "dict": "the map"}


def for_key(sentence: str) -> str:
    """The key that was meant where Hydra could not override one: another place, another package, or the nearest."""
    found = KEY.search(sentence)
    if found is None:
        return ""
    key = found[1]
    named = [part for part in re.split(r"[/.@]", key) if part in groups()]
    if named and "." not in key.partition("@")[0]:
        return f" (a group is chosen by its name alone: {named[-1]}=...)"
    above, _, last = key.rpartition(".")
    if (entry := ENTRIES.get(above.partition(".")[0])) and above.count(".") == 1:
        return near(last, [field.name for field in fields(entry)])
    place = meant(last)
    return f" (did you mean {place}?)" if place else near(key, [*groups(), *paths(to_plain(Campaign()))])


def for_option(name: str) -> str:
    """The override that an option stands for elsewhere: `--max-model-len` is engine.serve.max_model_len here."""
    if name in ("-m", "--multirun", "--multi"):
        return " (sweeps are not in this version)"
    place = meant(name.lstrip("-").replace("-", "_"))
    return f" (here it is typed {place})" if place else ""


def for_word(word: str) -> str:
    """What a word without `=` may have been: a file of a group, a switch, a verb, or half of a value."""
    chosen = [group for group in sorted(groups()) if (ROOT / "conf" / group / f"{word}.yaml").is_file()]
    if chosen:
        return f" (did you mean {chosen[0]}={word}?)"
    if word in ("dry_run", "dry-run", "dryrun"):
        return " (did you mean dry_run=true?)"
    if SCHEDULE.fullmatch(word):
        return "; a value with a space needs quotes: bracket.schedule='ABBA BAAB'"
    if manual.is_verb(word):
        return f"; a verb comes first: python -m campaign {word} ..."
    offered = near(word, [*manual.WITH_CONFIG, *manual.ON_A_RUN])
    return offered or "; a value with a space needs quotes: key='one two'"


def meant(name: str) -> str:
    """Where a name belongs that stands elsewhere, as it is typed; empty for one that belongs nowhere."""
    return _in_the_schema(name) or _knob(name) or _of_the_engine(name)


def _in_the_schema(name: str) -> str:
    if name == "dry_run":
        return "dry_run=true"
    every = paths(to_plain(Campaign()))
    expected = ("origins", "engine.exp")  # what the runner writes, and what experiments read of an engine
    own = [path for path in every if path.rpartition(".")[2] == name and not path.startswith(expected)]
    if name in groups() or (name not in every and len(own) == 1):
        return f"{name if name in groups() else own[0]}=..."
    return ""


def _knob(name: str) -> str:
    patched = [knob for overlay in knobs.known_overlays(()).values() for knob in overlay.knobs]
    for knob in [*knobs.without_overlay(), *patched]:
        if name in (knob.name, knob.variable, knob.profile_key):
            return f"{'arms.candidate' if knob in patched else 'engine'}.knobs.{knob.name}=..."
    return ""


def _of_the_engine(name: str) -> str:
    """A serve argument, or a variable that reaches the engine."""
    lists = [pinned.load(file.stem) for file in sorted(pinned.FOLDER.glob("*.json"))]
    if any(name in each.arguments for each in lists) and name not in (*pinned.OURS, *pinned.SECRET, *pinned.REFUSED):
        return f"engine.serve.{name}=... (arms.candidate.serve.{name}=... for one arm)"
    known = {variable for each in lists for variable in each.variables}
    if name.isupper() and variables.reaches_the_engine(name, known):
        return quoted(f"engine.env.{name}", "...")
    return ""


def in_our_words(text: str) -> str:
    """A sentence of Hydra on an override with a value of a wrong type, as our own say it: found, wanted, where."""
    merging = MERGING.match(text)
    if merging is None:
        return text
    key, arm = merging[1], merging[1].split(".")[1:2]
    if key.startswith("arms.") and NO_ARM in text:
        names = f"an experiment has {BASE} and {CANDIDATE}, or the arms that its file names"
        return f"{key}: no arm {arm[0]!r}{near(arm[0], (BASE, CANDIDATE))}; {names}"
    if found := CONVERT.search(text):
        return f"{key}: found {found[1]!r}, wanted {TYPES.get(found[2], found[2])}"
    if found := NO_TEXT.search(text):
        return f"{key}: found {KINDS[found[1].lower()]} {found[2]}, wanted text"
    return text


def groups() -> set[str]:
    """The groups of the shipped tree: the folders of conf/."""
    return {folder.name for folder in (ROOT / "conf").iterdir() if folder.is_dir() and folder.name.isalpha()}


def paths(node: Any, above: str = "") -> list[str]:
    """The dotted keys of a tree."""
    if not isinstance(node, dict):
        return []
    own = [f"{above}{key}" for key in node]
    return own + [path for key, value in node.items() for path in paths(value, f"{above}{key}.")]
