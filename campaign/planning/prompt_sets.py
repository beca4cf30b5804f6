"""The prompt sets that an experiment sends, and the files that they come from. Pure but for reading those."""

from pathlib import Path

from campaign.config import Campaign
from campaign.names import DECODE_SET, PREFIX_SET, SAMPLED_SET
from campaign.prompting.checks import Prompt
from campaign.prompting.prompts import load_prompts


def prompts_of(campaign: Campaign) -> dict[str, tuple[Prompt, ...]]:
    """Prompt set -> its prompts. Raises ConfigError with file and line of what cannot be read."""
    return {
        name: load_prompts(path, name, sampled=name == SAMPLED_SET) for name, path in prompt_paths(campaign).items()
    }


def prompt_paths(campaign: Campaign) -> dict[str, Path]:
    """Prompt set -> file, for the sets that this experiment sends."""
    paths = {DECODE_SET: Path(campaign.workload.prompts)}
    if campaign.gates.quality is not None:
        paths["quality"] = Path(campaign.gates.quality.prompts)
    if campaign.gates.korean is not None:
        paths["korean"] = Path(campaign.gates.korean.prompts)
        if campaign.gates.korean.sampled is not None:
            paths[SAMPLED_SET] = Path(campaign.gates.korean.sampled)
    if campaign.workload.prefix_prompts is not None:
        paths[PREFIX_SET] = Path(campaign.workload.prefix_prompts)
    return paths
