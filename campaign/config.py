"""The configuration tree as objects. Hydra composes it, this module parses it once; nobody past it sees a DictConfig.

Config classes are not frozen, because Hydra fills them (a frozen schema cannot be composed).
"""

import re
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING, DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from campaign.brackets import Bracket, planned_looks
from campaign.errors import ConfigError
from campaign.expectations import Exp7Expectation, Exp8Expectation, SharedPrefixExpectation
from campaign.gates import Gates
from campaign.limits import check

ROOT = Path(__file__).resolve().parent.parent
OPEN_MAP_OVERRIDE = re.compile(  # a name in an open map, or a whole map that may hold new names
    r"^((?:(?:arms\.[^.=\s]+\.(?:knobs|serve)|engine\.(?:knobs|serve|env)|model\.chat_template)\.[^=\s]+=.*"
    r"|(?:arms(?:\.[^.=\s]+(?:\.(?:knobs|serve))?)?|engine(?:\.(?:knobs|serve|env))?|model\.chat_template)=\s*\{.*))$",
    re.DOTALL,
)
INTERPOLATION = re.compile(r"(\\*)\$\{")


class Level(Enum):
    """Who wins: what stands later here goes over what stands before it."""

    default = 0
    profile = 1
    experiment = 2
    command_line = 3


class ClaimKindName(Enum):
    """The kinds of statistics.md section 1.5, by the names that YAML uses."""

    superiority = "superiority"
    equivalence = "equivalence"
    non_inferiority = "non_inferiority"
    no_difference = "no_difference"


@dataclass
class Written:
    """A value that somebody wrote for a key (a profile's own name of it, or the path of an open map), and who did."""

    key: str = MISSING
    level: Level = MISSING
    origin: str = MISSING  # "command line", "experiment exp8", "profile team.env:3", "engine reference_cpu"
    value: Any = None


@dataclass
class Origins:
    """Who wrote what, lowest first. The door fills it; plan.json keeps it, so that a resume gives the same answer."""

    written: list[Written] = field(default_factory=list)
    profile: list[Written] = field(default_factory=list)  # the lines of engine.profile


@dataclass
class Arm:
    """One way to start the engine: what it adds to the engine's own overlays, environment and serve arguments."""

    overlays: list[str] = field(default_factory=list)
    knobs: dict[str, Any] = field(default_factory=dict)
    serve: dict[str, Any] = field(default_factory=dict)


@dataclass
class ClaimConfig:
    """One registered statement about a metric. Bounds carry their unit in the name."""

    kind: ClaimKindName = MISSING
    metric: str = MISSING
    gate_pct: float | None = None
    margin_pct: float | None = None
    margin_pp: float | None = None
    ceiling_pct: float | None = None
    expect_pct: Any = None  # [low, high]; Any, because a typed list cannot hold an interpolation


@dataclass
class Engine:
    """How an engine is started. Times in seconds."""

    name: str = MISSING
    version: str = MISSING
    build: str = MISSING
    python: str = MISSING
    module: str = MISSING
    serve_arguments: str | None = None  # which version's pinned list holds; null is this version's own
    overlays: list[str] = field(default_factory=list)
    knobs: dict[str, Any] = field(default_factory=dict)  # for every arm that does not set its own
    serve: dict[str, Any] = field(default_factory=dict)
    env: dict[str, Any] = field(default_factory=dict)
    pass_env: list[str] = field(default_factory=list)
    profile: str | None = None  # a team's .env file
    boot_timeout_s: float = 600.0
    request_timeout_s: float = 120.0  # the longest silence of a request that is being worked on
    stop_timeout_s: float = 30.0
    stall_timeout_s: float = 60.0  # no token for so long while a request waits, none runs and no counter moves
    boot_retries: int = 1  # boots made again after a transient failure (a cold cache, a co-tenant); never a datum
    logic_only: str | None = None  # why this engine's speed says nothing, for instance "Triton's interpreter"
    minutes_per_boot: float = 1.0  # for the plan's estimate only
    exp8: Exp8Expectation = field(default_factory=Exp8Expectation)
    exp7: Exp7Expectation = field(default_factory=Exp7Expectation)
    shared_prefix: SharedPrefixExpectation = field(default_factory=SharedPrefixExpectation)


@dataclass
class Model:
    """The target, its drafter, and how tokens are drafted."""

    name: str = MISSING
    target: str = MISSING
    drafter: str | None = None
    method: str | None = None
    num_speculative_tokens: int = 0
    synthetic_acceptance_length: float | None = None  # tokens a step that the engine makes up; null drafts for real
    chat_template: dict[str, Any] = field(default_factory=dict)  # chat_template_kwargs of every chat, typed


class LauncherName(Enum):
    """Where an engine can live in this version."""

    local = "local"


@dataclass
class Launcher:
    """Where the engine's process lives."""

    name: LauncherName = LauncherName.local


@dataclass
class Workload:
    """What is sent in the measured window, the same prompts in the same order in every boot; max_tokens in tokens."""

    name: str = MISSING
    prompts: str = MISSING
    max_tokens: int = 256
    repeats: int = 1
    warm_up_requests: int = 4  # at least, after one cold request; more until the speed is steady
    max_warm_up_requests: int = 12
    prefix_prompts: str | None = None  # share a prefix: asked on an emptied prefix cache, then on a full one
    prefix_rounds: int = 1  # of the full one
    prefix_beside: bool = False  # a request of max_model_len - K tokens is under way whenever the cache is filled


@dataclass
class Tracking:
    """Where MLflow lives; uri null is off."""

    uri: str | None = None
    experiment_prefix: str = ""


@dataclass
class Host:
    """Facts of this machine. `history_sd_pct` and its df come from a registry of valid brackets; null is none."""

    name: str = "local"
    port: int = 8211
    runs_dir: str = "runs"
    cache_dir: str = MISSING
    overlay_path: list[str] = field(default_factory=list)
    min_free_gb: float = 2.0
    memory_timeout_s: float = 60.0  # how long the memory of a stopped engine may take to come back
    history_sd_pct: float | None = None
    history_df: int = 0
    registry: str | None = None  # JSON lines, one a valid bracket; null keeps none
    foreign_cpu_cores: float = 0.25  # of others and steal, over a boot; more voids it. On a machine of one's own


@dataclass
class Phase:
    """One run of an experiment that has several: what it changes, by the path of each value."""

    name: str = MISSING
    changes: dict[str, Any] = field(default_factory=dict)


@dataclass
class Campaign:
    """One experiment, ready to run."""

    name: str = MISSING
    hypothesis: str = MISSING
    arms: dict[str, Arm] = field(default_factory=dict)
    claims: dict[str, ClaimConfig] = field(default_factory=dict)
    engine: Engine = field(default_factory=Engine)
    model: Model = field(default_factory=Model)
    launcher: Launcher = field(default_factory=Launcher)
    workload: Workload = field(default_factory=Workload)
    bracket: Bracket = field(default_factory=Bracket)
    gates: Gates = field(default_factory=Gates)
    tracking: Tracking = field(default_factory=Tracking)
    host: Host = field(default_factory=Host)
    phases: list[Phase] = field(default_factory=list)  # runs one after another, each only where the one before passed
    phase: str | None = None  # only this one
    arm: str = "candidate"  # which arm `boot` starts
    dry_run: bool = False
    origins: Origins = field(default_factory=Origins)  # not for people to write


def register() -> None:
    """Make the schema and our resolvers (`${root:...}`, `${planned_looks:...}`) known to Hydra. Idempotent."""
    ConfigStore.instance().store(name="schema", node=Campaign)
    OmegaConf.register_new_resolver("root", lambda path: str(ROOT / path), replace=True)
    OmegaConf.register_new_resolver("planned_looks", planned_looks, replace=True)


def open_maps(overrides: list[str]) -> list[str]:
    """Overrides in which new names of the open maps (knobs, serve, env) need no `+`; they are checked later.

    A whole map is laid over what is there, as Hydra does with every map.
    """
    return [OPEN_MAP_OVERRIDE.sub(r"++\1", text) for text in overrides]


def parse(composed: DictConfig) -> Campaign:
    """The composed tree as objects.

    Raises ConfigError on a key that the schema lacks (also one forced in with `+`), a wrong type or a missing value.
    """
    try:
        plain = OmegaConf.to_container(composed, resolve=True, enum_to_str=True)
        return from_plain(plain)
    except OmegaConfBaseException as error:
        raise ConfigError(first_sentence(error)) from error


def from_plain(plain: Any) -> Campaign:
    """A plain container (of a composed tree, or of a plan.json) as objects. Raises ConfigError as `parse` does."""
    try:
        merged = OmegaConf.merge(OmegaConf.structured(Campaign), _literal(plain))
        campaign = OmegaConf.to_object(merged)
    except OmegaConfBaseException as error:
        raise ConfigError(first_sentence(error)) from error
    assert isinstance(campaign, Campaign)
    check(campaign)
    return campaign


def to_plain(campaign: Campaign) -> dict[str, Any]:
    """The resolved configuration as plain data, for plan.json and MLflow."""
    plain = _plain(campaign)
    assert isinstance(plain, dict)
    return plain


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {entry.name: _plain(getattr(value, entry.name)) for entry in fields(value)}
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value.name if isinstance(value, Enum) else value


def _literal(plain: Any) -> Any:
    """The same data, in which no text is read as an interpolation a second time."""
    if isinstance(plain, dict):
        return {key: _literal(value) for key, value in plain.items()}
    if isinstance(plain, list):
        return [_literal(value) for value in plain]
    return INTERPOLATION.sub(lambda m: m[1] * 2 + "\\${", plain) if isinstance(plain, str) else plain


def first_sentence(error: Exception) -> str:
    """An error of Hydra or OmegaConf in one line, without its `full_key` tail."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    key = next((line for line in lines if line.startswith("full_key:")), "")
    head = lines[0] if lines else type(error).__name__
    return f"{head} ({key.removeprefix('full_key: ')})" if key else head
