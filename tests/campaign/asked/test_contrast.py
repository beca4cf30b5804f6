"""By what the arms differ: told from the plan where it can be, and else from what both engines show."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from campaign.asked import contrast
from campaign.asked.arms import ResolvedArm, resolve
from campaign.asked.contrast import Shown, bare, require_shown
from campaign.asked.knobs import KnobValue
from campaign.config import Arm, Campaign, ClaimConfig, ClaimKindName
from campaign.console import format_plan
from campaign.errors import InvalidError
from campaign.gates.no_difference import NoDifference
from campaign.planning.plan import make
from overlays.values import Knob, Overlay, Upstream, Witness
from tests.fakes.evidence import no_difference, step_rate
from tests.fakes.line import ROOT, Line
from tests.fakes.overlay import CORE, Change, write_overlay

SYNC = {"async_scheduling": False}
COMMENT = Change(CORE, "SPIN_S = 0.0003", "SPIN_S = 0.00030")
EMPTY = Witness({}, {})


def knob_value(name: str = "fast", value: str = "1", origin: str = "test", **shown: Any) -> KnobValue:
    """A knob of two values, whose witness for this one is `shown`."""
    witness = {"0": EMPTY, "1": EMPTY} | {value: Witness(shown.get("resolved", {}), shown.get("behaved", {}))}
    return KnobValue(Knob(name, f"VLLM_{name.upper()}", ("0", "1"), "0", witness), value, origin)


def overlay(name: str, *knobs: KnobValue, requires: tuple[str, ...] = ()) -> Overlay:
    """An overlay that declares these knobs."""
    declared = tuple(value.knob for value in knobs)
    return Overlay(
        name, "to test", "tests", Upstream("", "", ""), requires, True, "reads nothing", declared, (), None, (), Path()
    )  # fmt: skip


def arms(*candidate: KnobValue, base: tuple[KnobValue, ...] = (), **overlays: Any) -> dict[str, ResolvedArm]:
    """Both arms, with these knobs and overlays."""
    return {
        "base": ResolvedArm("base", tuple(overlays.get("base_overlays", ())), base, ()),
        "candidate": ResolvedArm("candidate", tuple(overlays.get("overlays", ())), candidate, ()),
    }


def shown(stage: str = "one", holds: dict[str, bool] | None = None, **resolved: object) -> Shown:
    """What an engine showed."""
    return Shown(stage, resolved, holds or {})


# as shown

DOTTED = "overlays.fast.on"
NUMBERED = {"steps": {"min": 1.0}}
DIFFERENT = {
    "a resolved key": ({"resolved": {"key": True}}, shown(key=False), shown(key=True)),
    "a behaviour that base does not have": ({"behaved": NUMBERED}, shown(holds={"fast.steps": False}), shown()),
    "one key of two": ({"resolved": {"key": True, "other": 1}}, shown(key=True, other=0), shown(key=True, other=1)),
    "a behaviour beside a key that is alike": (
        {"resolved": {"key": True}, "behaved": NUMBERED},
        shown(key=True, holds={"fast.steps": False}),
        shown(key=True),
    ),
    "its own word, where it speaks in both": (
        {"resolved": {DOTTED: True}},
        Shown("one", {DOTTED: False}, {}),
        Shown("one", {DOTTED: True}, {}),
    ),
}


@pytest.mark.parametrize(("witness", "base", "candidate"), DIFFERENT.values(), ids=DIFFERENT)
def test_a_knob_has_changed_something_when_the_engines_differ_in_what_it_must_show(
    witness: dict[str, Any], base: Shown, candidate: Shown
) -> None:
    require_shown(arms(knob_value(**witness)), {"base": base, "candidate": candidate})


ALIKE = {
    "a resolved key": ({"resolved": {"key": True}}, shown(key=True), shown(key=True)),
    "a behaviour that base has too": ({"behaved": NUMBERED}, shown(holds={"fast.steps": True}), shown()),
    "a behaviour that nobody looked for": ({"behaved": NUMBERED}, shown(), shown()),
    "all of several": (
        {"resolved": {"key": True}, "behaved": NUMBERED},
        shown(key=True, holds={"fast.steps": True}),
        shown(key=True),
    ),
    "its own word in both": (
        {"resolved": {DOTTED: True}},
        Shown("one", {DOTTED: True}, {}),
        Shown("two", {DOTTED: True}, {}),
    ),
}


@pytest.mark.parametrize(("witness", "base", "candidate"), ALIKE.values(), ids=ALIKE)
@pytest.mark.parametrize("stage", ["one", "two"], ids=["same files", "other files"])
def test_a_knob_that_both_engines_show_alike_is_invalid_whatever_files_they_run(
    witness: dict[str, Any], base: Shown, candidate: Shown, stage: str
) -> None:
    other = Shown(stage, candidate.resolved, candidate.holds)
    with pytest.raises(InvalidError, match="arms identical"):
        require_shown(arms(knob_value(**witness)), {"base": base, "candidate": other})


def test_a_knob_of_base_must_change_something_too() -> None:
    both = arms(base=(knob_value(behaved=NUMBERED),))
    alike = {"base": shown("one"), "candidate": shown("two", {"fast.steps": True})}
    with pytest.raises(InvalidError, match="knob fast changes nothing, both engines show steps as arm base must"):
        require_shown(both, alike)
    require_shown(both, alike | {"candidate": shown("two", {"fast.steps": False})})


def test_a_knob_that_both_arms_set_alike_need_not_change_anything() -> None:
    both = arms(knob_value(resolved={"key": True}), base=(knob_value(resolved={"key": True}),))
    require_shown(both, {"base": shown("one", key=True), "candidate": shown("two", key=True)})


def test_the_record_of_a_boot_says_what_the_other_arm_must_do() -> None:
    facts = {"stage": "one", "resolved": '{"key": 1}', "other_arms_behaviour": json.dumps({"fast.steps": False})}
    assert Shown.of(facts) == shown(holds={"fast.steps": False}, key=1)


# what nothing could show


def test_an_overlay_is_bare_unless_something_but_its_own_word_shows_it() -> None:
    switch = knob_value(resolved={"key": True})
    told, idle = knob_value("told", resolved={DOTTED: True}), knob_value("idle")
    named = [overlay("switch", switch), overlay("told", told), overlay("idle", idle), overlay("patch")]
    assert bare(arms(switch, told, idle, overlays=named)) == {
        "told": f"no witness but its own word ({DOTTED})",
        "idle": "no knob with a witness",
        "patch": "no knob with a witness",
    }


def test_what_both_arms_stage_is_no_difference_between_them() -> None:
    assert bare(arms(overlays=[overlay("patch")], base_overlays=[overlay("patch")])) == {}


def test_an_overlay_that_only_base_stages_is_bare_too() -> None:
    assert list(bare(arms(base_overlays=[overlay("patch")]))) == ["patch"]


def test_a_part_that_a_shown_overlay_requires_is_not_bare_and_two_bare_ones_do_not_excuse_each_other() -> None:
    switch = knob_value(behaved=NUMBERED)
    named = [overlay("switch", switch, requires=("part",)), overlay("part", requires=("deep",)), overlay("deep")]
    assert bare(arms(switch, overlays=named)) == {}
    two = [overlay("one", requires=("two",)), overlay("two", requires=("one",))]
    assert list(bare(arms(overlays=two))) == ["one", "two"]


# as planned


def planned(campaign: Campaign) -> list[str]:
    """What the plan of an experiment says."""
    return format_plan(make(campaign, "run-1"))


def sameness(campaign: Campaign, *, alone: bool) -> Campaign:
    """The experiment with a claim of sameness, alone or beside its speed claim."""
    campaign.gates.acceptance, campaign.gates.no_difference = None, NoDifference()
    del campaign.claims["acceptance"]
    campaign.claims["same"] = ClaimConfig(kind=ClaimKindName.no_difference, metric="acceptance_pos1_pp")
    if alone:
        del campaign.claims["step_rate"]
        campaign.gates.step_rate = None
    return campaign


def test_sameness_beside_another_claim_excuses_no_arms_that_are_alike(exp8: Campaign) -> None:
    exp8.arms["candidate"] = Arm(serve=dict(SYNC))
    with pytest.raises(InvalidError, match="arms identical: base and candidate ask for the same"):
        planned(sameness(exp8, alone=False))


def test_sameness_alone_is_about_equal_arms(exp8: Campaign) -> None:
    exp8.arms["candidate"] = Arm(serve=dict(SYNC))
    assert planned(sameness(exp8, alone=True))


def test_one_word_of_a_claim_excuses_only_itself() -> None:
    both = {"same": no_difference("same"), "speed": step_rate()}
    assert [contrast.sameness_claimed(claims) for claims in ({}, both, {"same": both["same"]})] == [False, False, True]


def test_two_words_for_the_same_argument_are_invalid_before_a_boot(exp8: Campaign) -> None:
    exp8.arms = {"base": Arm(knobs={"prefix_cache": "0"}), "candidate": Arm(knobs={"prefix_cache": "auto"})}
    with pytest.raises(InvalidError, match="prefix_cache=0 and prefix_cache=auto are one to the engine"):
        planned(exp8)


def test_a_patch_that_nobody_switched_on_is_invalid_before_a_boot(exp8: Campaign) -> None:
    exp8.arms["candidate"] = Arm(overlays=["async_dflash"], serve=dict(SYNC))
    with pytest.raises(InvalidError, match=r"nobody set a knob of overlay async_dflash in arm candidate.*one of 0, 1"):
        planned(exp8)


def test_a_patch_that_nobody_switched_on_is_told_where_the_arms_differ_otherwise(exp8: Campaign) -> None:
    exp8.arms["candidate"] = Arm(overlays=["async_dflash"])
    assert any("nobody set a knob of overlay async_dflash in arm candidate" in line for line in planned(exp8))


@pytest.mark.parametrize("value", ["0", "1"])
def test_a_patch_whose_knob_somebody_set_is_left_to_the_engines(exp8: Campaign, value: str) -> None:
    exp8.arms["candidate"] = Arm(overlays=["async_dflash"], knobs={"async_dflash": value}, serve=dict(SYNC))
    assert not any("nobody set" in line for line in planned(exp8))


def test_what_being_staged_costs_is_asked_with_sameness_alone(exp8: Campaign) -> None:
    exp8.arms["candidate"] = Arm(overlays=["async_dflash"], serve=dict(SYNC))
    assert not any("nobody set" in line for line in planned(sameness(exp8, alone=True)))


def test_the_plan_says_that_a_patch_without_a_knob_can_never_pass(exp8: Campaign, tmp_path: Path) -> None:
    write_overlay(tmp_path, "said_nothing", COMMENT)
    exp8.host.overlay_path = [str(tmp_path)]
    exp8.arms["candidate"].overlays = ["async_dflash", "said_nothing"]
    assert [line for line in planned(exp8) if "said_nothing: no knob with a witness" in line and "INCONCLUSIVE" in line]


def test_another_witness_is_another_arm(exp8: Campaign, tmp_path: Path) -> None:
    """Who weakens a manifest between two boots would else go on with it."""
    home = write_overlay(tmp_path, "switch", COMMENT, knob=counted("switch"))
    exp8.host.overlay_path, exp8.arms["candidate"] = [str(tmp_path)], Arm(overlays=["switch"])
    before = resolve(exp8, "candidate")
    manifest = home / "manifest.toml"
    manifest.write_text(manifest.read_text().replace("min = 1 }", "min = 0 }"))
    assert resolve(exp8, "candidate").digest != before.digest


# the whole line


def counted(name: str) -> str:
    """A knob that only its steps can show: every engine makes some."""
    witness = "behaved = { steps = { min = 1 } }\n"
    head = f'[[knob]]\nname = "{name}"\nvariable = "VLLM_{name.upper()}"\nvalues = ["0", "1"]\ndefault = "0"\n'
    return f"\n{head}\n[knob.witness.0]\n{witness}\n[knob.witness.1]\n{witness}"


@pytest.fixture
def run(line: Line, tmp_path: Path) -> Callable[..., tuple[int, str]]:
    """run("name", "key=value", ...): a candidate with this overlay, synchronous as base is; its code and its words."""

    def ran(name: str, *more: str) -> tuple[int, str]:
        words = [
            f"host.overlay_path=[{tmp_path / 'o'}]", f"arms.candidate.overlays=[{name}]",
            "~arms.candidate.knobs.fake_async", f"arms.candidate.knobs.{name}=1",
            "arms.candidate.serve.async_scheduling=false", "claims.step_rate.gate_pct=-5",
        ]  # fmt: skip
        done = line.run("fake8", *words, *more)
        return done.returncode, done.stdout + done.stderr

    return ran


def test_a_patch_of_a_comment_whose_knob_shows_what_every_engine_shows_is_invalid(run, tmp_path: Path) -> None:
    write_overlay(tmp_path / "o", "noop", COMMENT, knob=counted("noop"))
    code, told = run("noop")
    assert code == 5, told
    assert "arms identical: knob noop changes nothing, both engines show steps as arm" in told


def test_a_patch_that_only_praises_itself_never_passes(run, tmp_path: Path) -> None:
    publish = Change(
        "vllm/platforms/cpu.py",
        "    config.async_scheduling = False\n",
        "    from vllm import engine_report\n    config.async_scheduling = False\n"
        "    engine_report.OVERLAYS['proud'] = {'on': True}\n",
    )
    shows = 'resolved = { "overlays.proud.on" = true }\n'
    knob = counted("proud").replace("behaved = { steps = { min = 1 } }\n", shows)
    write_overlay(tmp_path / "o", "proud", publish, knob=knob)
    code, told = run("proud", "bracket.schedule=ABBA")
    assert code == 3, told
    assert "overlay proud: no witness but its own word (overlays.proud.on)" in told


def test_sameness_beside_a_speed_claim_does_not_let_engines_pass_that_are_alike(line: Line, tmp_path: Path) -> None:
    conf = shutil.copytree(ROOT / "tests/conf", tmp_path / "conf")
    alike = (conf / "exp/fake8.yaml").read_text().partition("  candidate:")[0]
    (conf / "exp/alike.yaml").write_text(
        f"{alike}  candidate: {{}}\ngates: {{step_rate: {{}}, acceptance: null, no_difference: {{}}}}\nclaims:\n"
        "  step_rate: {kind: superiority, metric: step_per_s, gate_pct: -5}\n"
        "  same: {kind: no_difference, metric: acceptance_pos1_pp}\n"
    )
    words = ["--config-dir", str(conf), *line.overrides("alike")[2:]]
    done = subprocess.run(line.command(*words), cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 5, done.stdout + done.stderr
    assert "arms identical: both engines run the same files" in done.stdout
