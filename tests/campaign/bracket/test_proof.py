"""What an INVALID sentence leads with."""

import pytest

from campaign.bracket.proof import require
from campaign.engine.witness import ENGINE, UNKNOWN
from campaign.errors import InvalidError
from campaign.evidence import WitnessRow

COUNTED = WitnessRow(ENGINE, "asked", UNKNOWN, "none of ours", "1 of ours, 40 of others", ok=False, source="log")
NAMED = WitnessRow(ENGINE, "asked", "VLLM_TYPO", "1, read by the engine", "unknown to the engine", ok=False)
OFF = WitnessRow("async_dflash", "resolved", "async_scheduling", "True", "False", ok=False)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (
            (COUNTED, NAMED),
            r"^witness: engine: asked VLLM_TYPO is unknown to the engine, wanted 1, read by the engine$",
        ),
        ((COUNTED, NAMED, OFF), r"VLLM_TYPO is .*; 2 layers do not hold$"),
        ((COUNTED,), r"unknown variables is 1 of ours"),
    ],
    ids=["one variable", "a variable and a knob", "a count alone"],
)
def test_the_sentence_leads_with_the_row_that_names_the_variable(rows: tuple[WitnessRow, ...], sentence: str) -> None:
    with pytest.raises(InvalidError, match=sentence):
        require(rows)
