"""Twin of campaign.phases: what a phase changes, what was typed, and what there is no phase of."""

from dataclasses import replace

import pytest

from campaign import phases
from campaign.config import Campaign, Level, Phase
from campaign.door import compose
from campaign.errors import ConfigError
from campaign.planning.plan import make

SHADOW = Phase(
    "shadow",
    {
        "arms.candidate.knobs.async_dflash": "0",
        "arms.base.serve.max_num_seqs": 2,
        "bracket.schedule": "ABABA",
        "bracket.looks": [],
        "claims.step_rate": None,
        "gates.step_rate": None,
    },
)
ARMED = Phase("armed", {})


@pytest.fixture(scope="module")
def composed() -> Campaign:
    """EXP-8 as it is written."""
    found = compose(["exp=exp8"])
    assert found is not None
    return found


def with_phases(campaign: Campaign, *own: Phase, only: str | None = None) -> Campaign:
    return replace(campaign, phases=list(own), phase=only)


def test_each_phase_is_a_campaign_of_its_own_in_their_order(composed):
    shadow, armed = phases.of(with_phases(composed, SHADOW, ARMED), [])
    assert (shadow.phase, armed.phase) == ("shadow", "armed")
    assert shadow.bracket.schedule == "ABABA"
    assert set(shadow.claims) == {"acceptance"}
    assert (armed.bracket.schedule, set(armed.claims)) == ("ABBA BAAB", {"step_rate", "acceptance"})
    plan = make(shadow, "exp8-shadow-1")
    assert dict(plan.arms["base"].serve)["max_num_seqs"] == 2


def test_what_a_phase_writes_is_told_as_its_own_and_under_what_was_typed(composed):
    (shadow,) = phases.of(with_phases(composed, SHADOW), [])
    written = [line for line in shadow.origins.written if line.key == "arms.candidate.knobs.async_dflash"]
    assert [line.origin for line in written] == ["experiment exp8", "experiment exp8, phase shadow"]
    assert {line.level for line in written} == {Level.experiment}


@pytest.mark.parametrize(
    ("typed", "schedule"),
    [(["bracket.schedule=ABA"], "ABBA BAAB"), (["bracket=screen"], "ABBA BAAB"), (["host.port=1"], "ABABA")],
    ids=["the value", "the group it is in", "another"],
)
def test_what_was_typed_on_the_command_line_stays(composed, typed, schedule):
    (shadow,) = phases.of(with_phases(composed, SHADOW), typed)
    assert shadow.bracket.schedule == schedule


@pytest.mark.parametrize("typed", ["arms.candidate.knobs.async_dflash=1", "++arms.candidate.knobs={}", "arms={}"])
def test_a_phase_that_would_not_be_what_it_is_called_is_refused(composed, typed):
    with pytest.raises(ConfigError, match="phase shadow is the one that sets it to 0"):
        phases.of(with_phases(composed, SHADOW, ARMED), [typed])


def test_one_phase_may_be_asked_for_alone(composed):
    found = phases.of(with_phases(composed, SHADOW, ARMED, only="armed"), ["phase=armed"])
    assert [campaign.phase for campaign in found] == ["armed"]


def test_an_experiment_without_phases_is_itself(composed):
    assert phases.of(composed, []) == (composed,)


@pytest.mark.parametrize(
    ("own", "only", "words"),
    [
        ((SHADOW, SHADOW), None, "wanted words, each once"),
        ((Phase("../x", {}),), None, "wanted words, each once"),
        ((SHADOW, ARMED), "armd", "phase=armd: experiment exp8 has shadow, armed"),
        ((), "armed", "phase=armed: experiment exp8 has no phases"),
        ((Phase("a", {"bracket.shedule": "ABA"}),), None, "phase a: no key bracket.shedule"),
        ((Phase("a", {"arms.candidat.knobs.x": "1"}),), None, "phase a: no key arms.candidat.knobs.x"),
        ((Phase("a", {"bracket.max_boots": "many"}),), None, "max_boots"),
    ],
    ids=["twice", "no word", "unknown", "none there", "unknown key", "unknown arm", "wrong type"],
)
def test_a_wrong_phase_is_a_configuration_error(composed, own, only, words):
    with pytest.raises(ConfigError, match=words):
        phases.of(with_phases(composed, *own, only=only), [])
