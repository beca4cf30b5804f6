"""From the command line to a parsed configuration. Hydra enters here; its errors leave as one sentence and exit 2."""

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import hydra
from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from campaign.config import ROOT, Campaign, first_sentence, open_maps, parse, register
from campaign.errors import ConfigError

RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,120}")
NOISE = ("Config search path", "full_key", "object_type", "See https", "To append to your config", "reference_type")


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


def compose(overrides: list[str]) -> Campaign | None:
    """The configuration of a command line; None when Hydra only printed something (--cfg, --info)."""
    register()
    _refuse_sweep(overrides)
    found: list[DictConfig] = []

    def keep(composed: DictConfig) -> None:
        found.append(composed)

    sys.argv = ["python -m campaign", *open_maps(overrides)]
    os.environ["HYDRA_FULL_ERROR"] = "1"
    try:
        hydra.main(version_base="1.3", config_path="pkg://conf", config_name="config")(keep)()
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(sentence(error)) from error
    return parse(found[0]) if found else None


def _refuse_sweep(overrides: list[str]) -> None:
    if {"-m", "--multirun"} & set(overrides):
        raise ConfigError("sweeps (-m) are not in this version; start one experiment a command")


def sentence(error: Exception) -> str:
    """Hydra's message in one line: without the search path, and without its advice to force a key in with `+`."""
    lines = [" ".join(line.split()) for line in str(error).splitlines() if line.strip()]
    kept = [line for line in lines if not line.startswith(NOISE) and set(line) != {"^"}]
    text = " ".join(kept[:12]) or first_sentence(error)
    if "Could not override" in text:
        return f"{text} No such key in the configuration; `python -m campaign --cfg job exp=exp8` shows them all"
    if type(error).__name__ == "OverrideParseException":
        return f"{text} Quote the value, for example: key='\"value with # = , or 한국어\"'"
    return text
