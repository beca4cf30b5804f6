"""From the command line to a parsed configuration. Hydra enters here; its errors leave as one sentence and exit 2."""

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import hydra
from hydra.errors import HydraException, OverrideParseException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from campaign.config import ROOT, Campaign, absolute, first_sentence, open_maps, parse, register
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
    """Which finished or broken run a verb is about."""

    folder: Path


def run_reference(verb: str, arguments: list[str]) -> RunReference:
    """The run folder of `resume ID`, by id below runs/ or by path. Raises ConfigError when there is none."""
    if len(arguments) != 1:
        raise ConfigError(f"{verb} takes one run id (or the path of its folder), found {arguments or 'nothing'}")
    text = arguments[0]
    folder = Path(text) if "/" in text else ROOT / "runs" / text
    if "/" not in text and (not RUN_ID.fullmatch(text) or ".." in text):
        raise ConfigError(f"{text!r} is no run id: letters, digits, '_', '-', '.' only")
    if not (folder / "plan.json").is_file():
        raise ConfigError(f"no run {text}: {folder}/plan.json does not exist")
    return RunReference(folder.resolve())


def compose(arguments: list[str]) -> Campaign | None:
    """The configuration of a command line; None when Hydra only printed something (--cfg, --info).

    Raises ConfigError in one sentence for whatever Hydra, OmegaConf or the YAML parser refuses.
    """
    register()
    options, overrides = separated(arguments)
    found: list[DictConfig] = []

    def keep(composed: DictConfig) -> None:
        found.append(composed)

    sys.argv = ["python -m campaign", *open_maps(overrides), *options]
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
    return absolute(parse(found[0])) if found else None


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
            raise ConfigError(f"no option {word}{_why_no_option(name)}; `python -m campaign --help` shows all")
    return options, overrides


def _override(word: str) -> str:
    if word.lstrip("+~").startswith(("hydra.mode", "hydra.sweep", "hydra/launcher", "hydra/sweeper")):
        raise ConfigError(f"{word}: sweeps are not in this version; start one experiment a command")
    return word


def _option_value(name: str, value: str) -> str:
    wanted = WITH_VALUE[name]
    if not value or (wanted and value not in wanted):
        raise ConfigError(f"{name} takes {' or '.join(wanted) if wanted else 'a value'}, found {value or 'nothing'}")
    return value


def _why_no_option(name: str) -> str:
    return " (sweeps are not in this version)" if name in ("-m", "--multirun", "--multi") else ""


def unreadable(error: OverrideParseException) -> str:
    """An override that the grammar cannot read, with the spelling that works."""
    key, equals, value = error.override.partition("=")
    if not equals:
        return f"{error.override!r} is no override; wanted key=value"
    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
    return f"""cannot read {key}={value}; quote the value: {key}='"{quoted}"'"""


def sentence(error: Exception) -> str:
    """Hydra's message in one line: the cause with it, without search path and advice that leads nowhere."""
    lines = [" ".join(line.split()) for line in str(error).splitlines() if line.strip()]
    kept = [line for line in lines if not line.startswith(NOISE)]
    text = " ".join(kept[:12]) or first_sentence(error)
    if "ambiguous override" in text.lower() or "sweep" in text.lower():
        return f"{kept[0]}: sweeps are not in this version; give one value a key"
    if "Could not override" in text or "not in struct" in text:
        return f"{kept[0]} No such key; `python -m campaign --cfg job exp=exp8` shows them all"
    cause = error.__cause__
    reason = f" {first_sentence(cause)}" if isinstance(cause, Exception) else ""
    return f"{text}{'' if reason.strip() in text else reason}"
