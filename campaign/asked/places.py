"""The paths of a configuration, made absolute: a run is resumed from any folder, and an engine has its own."""

from pathlib import Path

from campaign.config import Campaign
from campaign.errors import ConfigError

PATH_PARTS = 3  # a hub's name is owner/name; what has more is a path


def absolute(campaign: Campaign) -> Campaign:
    """The same with every path made absolute. Raises ConfigError for a model's relative path that leads nowhere."""
    host, engine, model = campaign.host, campaign.engine, campaign.model
    host.runs_dir, host.cache_dir = _absolute(host.runs_dir), _absolute(host.cache_dir)
    host.overlay_path = [_absolute(path) for path in host.overlay_path]
    engine.python = _absolute(engine.python)
    engine.profile = None if engine.profile is None else _absolute(engine.profile)
    workload = campaign.workload
    workload.prompts = _absolute(workload.prompts)
    workload.prefix_prompts = None if workload.prefix_prompts is None else _absolute(workload.prefix_prompts)
    for gate in (campaign.gates.quality, campaign.gates.korean):
        if gate is not None:
            gate.prompts = _absolute(gate.prompts)
    model.target = _model("target", model.target)
    model.drafter = None if model.drafter is None else _model("drafter", model.drafter)
    return campaign


def _absolute(path: str) -> str:
    return str(Path(path).absolute())


def _model(key: str, text: str) -> str:
    """A folder, or a hub's name. The engine would take a misspelt path for a name and look for it offline."""
    if text.startswith("/") or exists(text):
        return _absolute(text)
    first, *rest = text.split("/")
    if first[:1] in (".", "~") or len(rest) >= PATH_PARTS - 1 or (rest and first and exists(first)):
        raise ConfigError(f"model.{key}: found {text!r}, a path that leads nowhere from {Path.cwd()}; correct it")
    return text


def exists(path: str) -> bool:
    """Whether there is anything at a path, whatever text it is."""
    try:
        return Path(path).exists()
    except OSError:  # too long for a name
        return False
