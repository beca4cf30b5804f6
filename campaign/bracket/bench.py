"""What every boot of a run shares."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from campaign.journal import RunFolder
from campaign.names import PREFIX_COLD, PREFIX_SET, PREFIX_WARM
from campaign.planning.plan import Plan
from campaign.prompting.checks import Prompt
from overlays.stage import Stage


@dataclass(frozen=True)
class Bench:
    """What every boot of a run shares."""

    plan: Plan
    folder: RunFolder
    stages: dict[str, Stage]  # by arm
    prompts: dict[str, tuple[Prompt, ...]]  # by prompt set
    say: Callable[[str], None]
    site: Path | None = None  # where the engine's libraries lie
    told: Mapping[str, str] = field(default_factory=dict)  # facts of all its boots

    @property
    def answered(self) -> dict[str, tuple[Prompt, ...]]:
        """The prompts by the name under which their answers are kept."""
        both = dict.fromkeys((PREFIX_COLD, PREFIX_WARM), self.prompts.get(PREFIX_SET, ()))
        return {name: prompts for name, prompts in (self.prompts | both).items() if prompts and name != PREFIX_SET}

    @property
    def longest_silence_s(self) -> float:
        """Without a token for so long, a request is looked into (StallWatch)."""
        engine = self.plan.campaign.engine
        return min(engine.request_timeout_s, engine.stall_timeout_s)
