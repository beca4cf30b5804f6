"""What a plan needs so that no boot is lost: room for the answers, somebody who answers, a way to draft. Pure."""

from collections.abc import Mapping

from campaign import pinned
from campaign.arms import ResolvedArm
from campaign.checks import Prompt
from campaign.config import Campaign
from campaign.errors import ConfigError
from campaign.limits import near

REPORTER = "engine_report"  # the overlay by which an engine tells what it runs
FAKE = "fake"  # the build that tells it by itself
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


def _check_lengths(
    campaign: Campaign, arms: Mapping[str, ResolvedArm], prompts: Mapping[str, tuple[Prompt, ...]]
) -> None:
    """No answer may be longer than the engine's longest request: it would be refused after the boot."""
    lengths = [dict(arm.serve).get("max_model_len") for arm in arms.values()]
    known = [length for length in lengths if isinstance(length, int)]  # "auto" is known to nobody yet
    asked = {f"prompt {p.id}": p.max_tokens for found in prompts.values() for p in found}
    for where, tokens in {"workload": campaign.workload.max_tokens, **asked}.items():
        if known and tokens >= min(known):
            raise ConfigError(f"{where}: max_tokens {tokens} leaves no room for a prompt in max_model_len {min(known)}")


def _check_drafting(campaign: Campaign, arms: Mapping[str, ResolvedArm]) -> None:
    """Method, drafter and number of tokens belong together; a method is the engine's own, or an overlay's."""
    model, version = campaign.model, campaign.engine.serve_arguments or campaign.engine.version
    if model.method is None:
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
    if model.drafter is None and model.method in FROM_A_DRAFTER:
        raise ConfigError(f"model.drafter: found null, but method {model.method} drafts with a model of its own")


def _methods(arm: ResolvedArm) -> list[str]:
    """The ways of drafting that the knobs of an arm's overlays speak of."""
    knobs = [knob for overlay in arm.overlays for knob in overlay.knobs]
    return [name for knob in knobs for served in knob.served.values() for name in served.methods]
