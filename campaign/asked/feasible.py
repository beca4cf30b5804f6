"""What a plan needs so that no boot is lost: room for the answers, somebody who answers, a way to draft. Pure."""

from collections.abc import Mapping

from campaign.asked import pinned
from campaign.asked.arms import ResolvedArm
from campaign.config import Campaign
from campaign.errors import ConfigError
from campaign.limits import near
from campaign.prompting.checks import Prompt

REPORTER = "engine_report"  # the overlay by which an engine tells what it runs
FAKE = "fake"  # the build that tells it by itself
CPU = "cpu"
WITHOUT_DEVICE = (CPU, FAKE)  # builds
SHARE = "gpu_memory_utilization"
LAST_PORT = 65535
FROM_A_DRAFTER = ("dflash", "dflash2", "draft_model", "dspark", "eagle", "eagle3", "medusa", "mlp_speculator")


def check(campaign: Campaign, arms: Mapping[str, ResolvedArm], prompts: Mapping[str, tuple[Prompt, ...]]) -> None:
    """Raises ConfigError for what would only be told after a boot."""
    _check_lengths(campaign, arms, prompts)
    _check_drafting(campaign, arms)
    for arm in arms.values():
        if campaign.engine.build != FAKE and REPORTER not in (overlay.name for overlay in arm.overlays):
            raise ConfigError(
                f"arm {arm.name} stages no overlay {REPORTER}, so nobody could tell what its engine runs; "
                "add it to engine.overlays"
            )


def check_side_by_side(campaign: Campaign, arms: Mapping[str, ResolvedArm]) -> None:
    """Two engines live at once need memory and ports for both. Raises ConfigError where that cannot be.

    An engine on a GPU asks at its start whether its share of the whole device is free, also where its KV is given in
    bytes; on a CPU it takes what it is told to.
    """
    if campaign.host.port == LAST_PORT:
        raise ConfigError(f"host.port={LAST_PORT}: a duet takes the next port too; choose a lower one")
    if campaign.engine.build in WITHOUT_DEVICE:
        return
    shares = {name: dict(arm.serve).get(SHARE) for name, arm in arms.items()}
    total = sum(share for share in shares.values() if isinstance(share, int | float))
    told = ", ".join(f"{name} {'none' if share is None else share}" for name, share in shares.items())
    if None in shares.values() or total > 1:
        raise ConfigError(
            f"bracket=duet has both engines on the device at once, and {SHARE} is {told}: "
            f"set engine.serve.{SHARE} to less than half for both (each then plans its KV within it), for instance 0.45"
        )


def _check_lengths(
    campaign: Campaign, arms: Mapping[str, ResolvedArm], prompts: Mapping[str, tuple[Prompt, ...]]
) -> None:
    """No answer may be longer than the engine's longest request: it would be refused after the boot."""
    lengths = [dict(arm.serve).get("max_model_len") for arm in arms.values()]
    known = [length for length in lengths if isinstance(length, int)]  # "auto" is known to nobody yet
    asked = {f"{p.where}: prompt {p.id}": p.max_tokens for found in prompts.values() for p in found}
    for where, tokens in {"workload": campaign.workload.max_tokens, **asked}.items():
        if known and tokens >= min(known):
            raise ConfigError(
                f"{where}: max_tokens {tokens} leaves no room for a prompt in max_model_len {min(known)}; ask for fewer"
            )


def _check_drafting(campaign: Campaign, arms: Mapping[str, ResolvedArm]) -> None:
    """Method, drafter and number of tokens belong together; a method is the engine's own, or an overlay's."""
    model, version = campaign.model, campaign.engine.serve_arguments or campaign.engine.version
    if model.method is None:
        if model.synthetic_acceptance_length is not None:
            raise ConfigError(f"model.{pinned.SYNTHETIC} is set, but model.method is null, which drafts nothing")
        if model.drafter is not None:
            raise ConfigError("model.drafter is set, but model.method is null, which drafts nothing; set both or none")
        return
    known = [*pinned.load(version).methods, *(name for arm in arms.values() for name in _methods(arm))]
    if model.method not in known:
        raise ConfigError(
            f"model.method: vLLM {version} knows no way of drafting {model.method!r}{near(model.method, known)}, "
            "and no knob of a staged overlay names it"
        )
    if model.num_speculative_tokens < 1:
        raise ConfigError(f"model.num_speculative_tokens: found 0 beside method {model.method}, wanted at least 1")
    _check_synthetic(campaign, version)
    if model.drafter is None and model.method in FROM_A_DRAFTER:
        raise ConfigError(f"model.drafter: found null, but method {model.method} drafts with a model of its own")


def _check_synthetic(campaign: Campaign, version: str) -> None:
    """An acceptance that is made up needs an engine that can, and fits into what is drafted."""
    length, most = campaign.model.synthetic_acceptance_length, campaign.model.num_speculative_tokens + 1
    if length is None:
        return
    where = f"model.{pinned.SYNTHETIC}={length:g}"
    if pinned.SYNTHETIC not in pinned.load(version).speculation:
        raise ConfigError(f"{where}: vLLM {version} cannot make its acceptance up; set it to null")
    if length > most:
        raise ConfigError(f"{where}: wanted at most {most}, the tokens of a step with model.num_speculative_tokens")
    if campaign.engine.build == CPU:
        raise ConfigError(f"{where}: the CPU build's sampler refuses it in its first step; use a GPU build, or null")


def _methods(arm: ResolvedArm) -> list[str]:
    """The ways of drafting that the knobs of an arm's overlays speak of."""
    knobs = [knob for overlay in arm.overlays for knob in overlay.knobs]
    return [name for knob in knobs for served in knob.served.values() for name in served.methods]
