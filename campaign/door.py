"""From the command line to a parsed configuration. Hydra enters here; its errors leave as one sentence and exit 2."""

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException, OverrideParseException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from campaign.asked import confidential, hints, profile
from campaign.asked.origins import Source, quoted, written
from campaign.asked.places import absolute, exists
from campaign.config import (
    ROOT,
    Campaign,
    Level,
    Origins,
    Written,
    first_sentence,
    open_maps,
    parse,
    register,
    to_plain,
)
from campaign.errors import ConfigError

RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,120}")
NOISE = (
    "Config search path",
    "provider=",
    "full_key",
    "object_type",
    "See https",
    "To append to your config",
    "reference_type",
    "Set the environment variable",
)
CONF = ROOT / "conf"
JSON = "--json"
CONFIG_DIRS = ("--config-dir", "-cd")
OPEN_PACKAGES = (None, "", "engine", "arms")  # where a file hangs that may write into an open map
SWITCHES = ("--resolve", "--hydra-help", "--version")
WITH_VALUE: dict[str, tuple[str, ...]] = {
    "--cfg": ("job", "hydra", "all"),
    "-c": ("job", "hydra", "all"),
    "--info": ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath"),
    "-i": ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath"),
    "--package": (),
    "-p": (),
    "--config-dir": (),
    "-cd": (),
}


@dataclass(frozen=True)
class RunReference:
    """Which finished or broken run a verb is about; or, for `inspect`, the files that are looked into."""

    folder: Path
    files: tuple[Path, ...] = ()
    as_json: bool = False


def run_reference(verb: str, arguments: list[str]) -> RunReference:
    """The run folder of `resume ID`, by id below runs/ or by path; `inspect` takes files too, and --json.

    Raises ConfigError when there is none.
    """
    if verb == "inspect":
        return _inspected(arguments)
    if len(arguments) != 1:
        raise ConfigError(f"{verb} takes one run id (or the path of its folder); found {arguments or 'nothing'}")
    return RunReference(_run_folder(arguments[0]))


def _run_folder(text: str) -> Path:
    folder = Path(text) if "/" in text else ROOT / "runs" / text
    if "/" not in text and (not RUN_ID.fullmatch(text) or ".." in text):
        raise ConfigError(f"{text!r} is no run id: letters, digits, '_', '-', '.' only")
    if not (folder / "plan.json").is_file():
        raise ConfigError(f"no run {text}: {folder}/plan.json does not exist")
    return folder.resolve()


def _inspected(arguments: list[str]) -> RunReference:
    """One run, or one file or more. With --json a run is what it left behind: its result and its bracket records."""
    names = [word for word in arguments if word != JSON]
    as_json = len(names) < len(arguments)
    if strange := [word for word in names if word.startswith("-")]:
        raise ConfigError(f"inspect has no option {strange[0]}; there is {JSON}")
    if not names:
        raise ConfigError(
            "inspect takes one run id (or the path of its folder), or an engine's log, or a saved /metrics text, or "
            "other files of docs/inspect.md, one or more; found nothing"
        )
    try:
        files = tuple(Path(name) for name in names if Path(name).is_file())
        if len(files) == len(names):
            return RunReference(files[0].resolve().parent, files, as_json)
        for name in names:
            if not Path(name).is_file():
                _check_inspectable(name)
    except OSError as error:  # a name that is too long, a folder that may not be read
        raise ConfigError(f"no such file or run: {names[0][:80]} ({error.strerror})") from error
    if len(names) > 1:
        raise ConfigError(f"inspect takes files, or one run; found {', '.join(names)}; give a run by itself")
    folder = _run_folder(names[0])
    return RunReference(folder, _left_by(folder) if as_json else (), as_json)


def _left_by(folder: Path) -> tuple[Path, ...]:
    """What a run wrote at its end. Raises ConfigError for one that has no verdict yet."""
    if not (folder / "result.json").is_file():
        raise ConfigError(f"{folder.name} has no result.json: it has not ended; leave {JSON} out, or resume it")
    return (folder / "result.json", *sorted(folder.glob("records/*.json")))


def _check_inspectable(text: str) -> None:
    """Raises ConfigError for what is neither a file nor a run, with what to give instead."""
    folder = Path(text) if "/" in text else ROOT / "runs" / text
    if "://" in text:
        name = "metrics.txt" if "metrics" in text else "engine.log"
        raise ConfigError(
            f"{text} is an address; save it with curl first: curl -s {text} > {name}, then inspect {name}"
        )
    if (folder / "engine.log").is_file() and not (folder / "plan.json").is_file():
        raise ConfigError(f"{text} is the folder of a boot; its log is {folder / 'engine.log'}: inspect that")
    if Path(text).exists() and not Path(text).is_dir():
        raise ConfigError(f"{text} is no regular file; save what it gives in one, and inspect that")
    if not (folder / "plan.json").is_file():
        raise ConfigError(f"no such file or run: {text} (a run is a folder with a plan.json, in runs/ or by its path)")


def compose(arguments: list[str]) -> Campaign | None:
    """The configuration of a command line; None when Hydra only printed something (--cfg, --info).

    Raises ConfigError in one sentence for whatever Hydra, OmegaConf or the YAML parser refuses.
    """
    register()
    options, overrides = separated(arguments)
    overrides = open_maps(_none_lost(options, overrides))
    found: list[tuple[DictConfig, list[Source]]] = []

    def keep(composed: DictConfig) -> None:
        found.append((composed, []))  # from here on a fault is ours
        found[0][1].extend(_files(overrides))

    sys.argv = ["python -m campaign", *overrides, *options]
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra raises instead of ending the process with a code of its own
    try:
        hydra.main(version_base="1.3", config_path="pkg://conf", config_name="config")(keep)()
    except OverrideParseException as error:
        raise ConfigError(unreadable(error)) from error
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(sentence(error)) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"a file of the configuration tree (or of --config-dir) is not UTF-8: {error}") from error
    except YAMLError as error:
        raise ConfigError(f"a configuration file is no YAML: {' '.join(str(error).split())}") from error
    except Exception as error:  # what Hydra did not mean to raise at odd input: engine=null, a number of 5000 digits
        if found:
            raise
        raise ConfigError(f"cannot be composed: {first_sentence(error)} ({type(error).__name__})") from error
    return _known(*found[0], overrides) if found else None


def _known(composed: DictConfig, files: list[Source], overrides: list[str]) -> Campaign:
    """The configuration, with who wrote what of it."""
    parsed = parse(composed)
    confidential.refuse_urls("", to_plain(parsed))  # an absolute path is no URL any more
    campaign = absolute(parsed)
    if campaign.origins != Origins():
        raise ConfigError("origins: the runner writes this part itself; leave it out")
    campaign.origins.written = written(campaign, files, _typed(overrides))
    if campaign.engine.profile is not None:
        path = Path(campaign.engine.profile)
        campaign.origins.profile = [
            Written(line.key, Level.profile, f"profile {path.name}:{line.number}", line.value)
            for line in profile.read(path)
        ]
    for line in [*campaign.origins.written, *campaign.origins.profile]:  # plan.json keeps what others go over, too
        where = line.key if line.level is Level.command_line else f"{line.key} ({line.origin})"
        confidential.refuse(where, line.value)
    return campaign


def _none_lost(options: list[str], overrides: list[str]) -> list[str]:
    """The overrides, where Hydra drops nothing without a word: a file with the name of one of ours, a second choice."""
    given = [options[at + 1] for at, word in enumerate(options) if word in CONFIG_DIRS]
    if len(given) > 1:
        raise ConfigError(f"--config-dir takes one folder, found {', '.join(given)}")
    folders = [Path(name) for name in given if exists(name)]  # of another one Hydra tells
    for folder in folders:
        _refuse_hidden(folder)
    groups = {path.name for conf in (CONF, *folders) for path in conf.glob("*") if path.is_dir()}
    chosen: dict[str, str] = {}
    for word in overrides:
        key, _, value = word.partition("=")
        group = key.strip().lstrip("+")
        if group in groups and value[:1] != "{" and chosen.setdefault(group, value) != value:
            raise ConfigError(f"{group}={chosen[group]} and {group}={value}: a group takes one choice; leave one out")
    return overrides


def _refuse_hidden(folder: Path) -> None:
    for ours in sorted(CONF.glob("**/*.yaml")):
        theirs = folder / ours.relative_to(CONF)
        if theirs.is_file() and theirs.read_bytes() != ours.read_bytes():
            raise ConfigError(f"{theirs} has the name of {ours}, which would be used instead; rename it")


def _files(overrides: list[str]) -> list[Source]:
    """The files that were composed, in their order. Only while Hydra is running."""
    loader: Any = GlobalHydra.instance().config_loader()
    found = loader.compute_defaults_list("config", overrides, RunMode.RUN).defaults
    ours = [entry for entry in found if entry.config_path != "schema" and entry.package in OPEN_PACKAGES]
    return [Source(entry.config_path, entry.package or "", _tree(loader, entry.config_path)) for entry in ours]


def _tree(loader: Any, file: str) -> Any:
    return OmegaConf.to_container(loader.repository.load_config(file).config, resolve=False)


def _typed(overrides: list[str]) -> list[tuple[str, Any]]:
    """Path and value of the overrides that reach an open map."""
    lines = [text for text in overrides if text.lstrip("+").startswith(("engine.", "engine={", "arms.", "arms={"))]
    return [(found.key_or_group, found.value()) for found in OverridesParser.create().parse_overrides(lines)]


def separated(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Hydra's options (with their values) and the overrides, in any order. Raises ConfigError for other options."""
    options: list[str] = []
    overrides: list[str] = []
    waiting = list(arguments)
    while waiting:
        word = waiting.pop(0)
        name, _, value = word.partition("=")
        if not word.startswith("-"):
            overrides.append(_override(word))
        elif name in SWITCHES:
            options.append(word)
        elif name in WITH_VALUE:
            options += [name, _option_value(name, value or (waiting.pop(0) if waiting else ""))]
        else:
            raise ConfigError(f"no option {word}{hints.for_option(name)}; `python -m campaign --help` shows all")
    return options, overrides


def _override(word: str) -> str:
    if word.lstrip("+~").startswith(("hydra.mode", "hydra.sweep", "hydra/launcher", "hydra/sweeper")):
        raise ConfigError(f"{word}: sweeps are not in this version; start one experiment a command")
    if word.lstrip("+~").startswith("hydra.searchpath"):
        raise ConfigError(f"{word}: a tree of one's own is given with --config-dir")
    return word


def _option_value(name: str, value: str) -> str:
    wanted = WITH_VALUE[name]
    if not value or value.startswith("-") or (wanted and value not in wanted):
        raise ConfigError(f"{name} takes {' or '.join(wanted) if wanted else 'a value'}, found {value or 'nothing'}")
    return value


def unreadable(error: OverrideParseException) -> str:
    """An override that the grammar cannot read, with the spelling that works."""
    key, equals, value = error.override.partition("=")
    if not equals:
        return f"{error.override!r} is no override; wanted key=value{hints.for_word(error.override)}"
    return f"cannot read {key}={value}; quote the value: {quoted(key, value)}"


def sentence(error: Exception) -> str:
    """Hydra's message in one line: the cause with it, without search path and advice that leads nowhere."""
    lines = [" ".join(line.split()) for line in str(error).splitlines() if line.strip()]
    kept = [line for line in lines if not line.startswith(NOISE)]
    text = " ".join(kept[:12]) or first_sentence(error)
    if "ambiguous override" in text.lower() or "sweep" in text.lower():
        return f"{kept[0]}: sweeps are not in this version; give one value a key"
    if "Could not override" in text or "not in struct" in text:
        return f"{kept[0]} No such key{hints.for_key(text)}; `python -m campaign --cfg job exp=exp8` shows them all"
    cause = error.__cause__
    reason = f" {first_sentence(cause)}" if isinstance(cause, Exception) else ""
    return hints.in_our_words(f"{text}{'' if reason.strip() in text else reason}")
