"""The gates, one question a file. `Gates` is their order on the console; null in YAML turns one off."""

from dataclasses import dataclass

from campaign.gates.acceptance import Acceptance
from campaign.gates.base import Gate, GateResult
from campaign.gates.draft_rate import DraftRate
from campaign.gates.fused import Fused
from campaign.gates.korean import Korean
from campaign.gates.kv import Kv
from campaign.gates.no_difference import NoDifference
from campaign.gates.outputs import Outputs
from campaign.gates.prefix import Prefix
from campaign.gates.quality import Quality
from campaign.gates.step_rate import StepRate
from campaign.gates.ttft import Ttft

__all__ = ["Gate", "GateResult", "Gates"]


@dataclass
class Gates:
    """Which gates are on. A gate is its own configuration: its fields are its limits."""

    kv: Kv | None = None
    fused: Fused | None = None
    quality: Quality | None = None
    korean: Korean | None = None
    outputs: Outputs | None = None
    prefix: Prefix | None = None
    acceptance: Acceptance | None = None
    draft_rate: DraftRate | None = None
    ttft: Ttft | None = None
    step_rate: StepRate | None = None
    no_difference: NoDifference | None = None

    def switched_on(self) -> dict[str, Gate]:
        """The gates that are on, by name, in the order they are judged and shown."""
        return {name: gate for name, gate in vars(self).items() if gate is not None}
