"""From a configuration to the ordered boots and the registered claims."""

import json
import re
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from campaign.config import Arm, Campaign, ClaimConfig, ClaimKindName
from campaign.errors import ConfigError, InvalidError
from campaign.planning.plan import Plan, PlannedBoot, detectable, make, new_run_id, underpowered
from verdict.claims import ClaimKind, Direction
from verdict.fit import Scale

MOST_OF_THE_LIBRARIES = 3.0
HEAVY = ("torch", "vllm", "mlflow", "pandas", "scipy.stats", "matplotlib", "sklearn", "sqlalchemy")
RUN = (
    "import sys; from campaign.__main__ import main; code = main(sys.argv[1:]); print('MODULES', *sys.modules); "
    "sys.exit(code)"
)


def planned(campaign: Campaign, run_id: str = "run-1") -> Plan:
    """The plan of one run."""
    return make(campaign, run_id)


def claim(campaign: Campaign, **fields: Any) -> Campaign:
    """The experiment with another step_rate claim."""
    plain = {"kind": ClaimKindName.superiority, "metric": "step_per_s"}
    campaign.claims["step_rate"] = ClaimConfig(**(plain | fields))
    return campaign


def own_schedule(campaign: Campaign, schedule: str) -> None:
    """As `bracket.schedule=...` on the command line: the looks of the shipped one go with it."""
    campaign.bracket.schedule, campaign.bracket.looks = schedule, []


def modules(stdout: str) -> set[str]:
    """What a process had imported when it ended."""
    return set(stdout.rpartition("MODULES ")[2].split())


# what a dry run costs and shows


def test_a_dry_run_imports_nothing_heavy(python) -> None:
    done = python("-c", RUN, "exp=exp8", "dry_run=true")
    assert done.returncode == 0, done.stderr
    assert sorted(modules(done.stdout) & set(HEAVY)) == []


def test_help_imports_not_even_hydra(python) -> None:
    done = python("-c", RUN, "--help")
    assert done.returncode == 0
    assert sorted(modules(done.stdout) & {*HEAVY, "hydra", "omegaconf", "numpy", "scipy", "yaml", "psutil"}) == []


def test_a_dry_run_costs_little_more_than_importing_hydra_and_scipy(command) -> None:
    """0.8 s of CPU on a quiet machine (2026-11-30). A ratio within one run: what else runs here must not decide."""
    light = [sys.executable, "-c", "import hydra, scipy.special"]
    paid = min(cpu_seconds(lambda: subprocess.run(light, check=True)) for _ in range(3))
    spent = min(cpu_seconds(lambda: command("exp=exp8", "dry_run=true")) for _ in range(3))
    assert spent / paid < MOST_OF_THE_LIBRARIES


def cpu_seconds(run: Callable[[], object]) -> float:
    """User and system seconds of the children that a call waits for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize("words", [["exp=exp8", "bracket.max_boots=8"], ["exp=aa"]], ids=["exp8", "aa"])
def test_a_dry_run_prints_the_detectable_effect_for_three_guesses(asked, words: list[str]) -> None:
    done = asked(*words, "dry_run=true", "host.registry=null")
    assert done.returncode == 0, done.stderr
    assert re.search(
        r"step/s 2\.\d % at a boot sd of 1 %, 5\.\d % at a boot sd of 2 %, 12\.\d % at a boot sd of 5 % "
        r"\(guess: this host has no history; 80 % power\)",
        done.stdout,
    )
    assert done.stdout.endswith("dry run: nothing was started\n")


def test_a_dry_run_with_history_prints_what_this_host_can_see(asked) -> None:
    words = ["bracket.max_boots=8", "host.history_sd_pct=5.4", "host.history_df=10"]
    done = asked("exp=exp8", "dry_run=true", *words)
    told = r"step/s 13\.\d % at a boot sd of 5\.4 % \(host\.history_sd_pct: boot sd 5\.4 % on 10 df; 80 % power\)"
    assert re.search(told, done.stdout)


def test_a_dry_run_starts_nothing_and_writes_nothing(command, tmp_path: Path) -> None:
    done = command("exp=exp8", "dry_run=true", f"host.runs_dir={tmp_path / 'runs'}")
    assert (done.returncode, done.stderr, (tmp_path / "runs").exists()) == (0, "", False)
    assert list((tmp_path / "cwd").iterdir()) == []


def test_a_dry_run_of_a_screen_says_that_it_is_no_verdict(asked) -> None:
    done = asked("exp=exp8", "bracket=screen", "dry_run=true")
    assert re.search(r"bracket +(ABA|BAB).*: 3 boots", done.stdout)
    assert "a screen is never a verdict" in done.stdout


# schedule and coin


def test_a_boot_knows_its_arm_and_its_folder() -> None:
    assert [(b.arm, b.name) for b in (PlannedBoot(1, "A"), PlannedBoot(12, "B"))] == [
        ("base", "01-A"),
        ("candidate", "12-B"),
    ]


def test_the_boots_follow_the_schedule(exp8: Campaign) -> None:
    exp8.bracket.mirror = False
    plan = planned(exp8)
    assert "".join(b.letter for b in plan.boots) == "ABBABAABABBABAAB"
    assert [b.index for b in plan.boots] == list(range(1, 17))


def test_the_coin_is_the_same_for_the_same_run(exp8: Campaign) -> None:
    assert planned(exp8, "exp8-20261130-1") == planned(exp8, "exp8-20261130-1")


def test_both_sides_of_the_coin_occur(exp8: Campaign) -> None:
    sides = [planned(exp8, f"exp8-20261130-{i}").flipped for i in range(24)]
    assert 4 < sum(sides) < 20


@pytest.mark.parametrize("flipped", [True, False], ids=["mirrored", "as written"])
def test_a_mirrored_schedule_exchanges_the_arms(exp8: Campaign, flipped: bool) -> None:
    plan = next(p for p in (planned(exp8, f"run-{i}") for i in range(64)) if p.flipped is flipped)
    assert plan.schedule.letters == ("BAABABBABAABABBA" if flipped else "ABBABAABABBABAAB")


def test_the_coin_can_be_left_out(exp8: Campaign) -> None:
    exp8.bracket.mirror = False
    assert not any(planned(exp8, f"run-{i}").flipped for i in range(8))


@pytest.mark.parametrize(
    ("schedule", "sentence"),
    [
        ("", "found nothing"),
        ("ABX", "found 'ABX'"),
        ("abba", "found 'abba'"),
        ("A,B", "found 'A,B'"),
        ("AAAA", "not separable"),
        ("AB", "not separable"),
        ("ABBA BAAB ABBA BAAB ABBA", "20 boots, bracket.max_boots allows 16"),
    ],
)
def test_a_schedule_that_cannot_be_judged_is_refused(exp8: Campaign, schedule: str, sentence: str) -> None:
    own_schedule(exp8, schedule)
    with pytest.raises(ConfigError, match=f"bracket.schedule.*{sentence}"):
        planned(exp8)


@pytest.mark.parametrize("arms", [{"base"}, {"candidate"}, {"base", "candidate", "third"}, set()], ids=sorted)
def test_an_experiment_has_two_arms(exp8: Campaign, arms: set[str]) -> None:
    exp8.arms = {name: exp8.arms.get(name, Arm()) for name in arms}
    with pytest.raises(ConfigError, match="an experiment has the arms base and candidate; exp8 has"):
        planned(exp8)


def test_a_run_id_says_when_and_is_not_shared_by_two_that_start_together() -> None:
    ids = {new_run_id("exp8") for _ in range(20)}
    assert len(ids) > 15
    assert all(re.fullmatch(r"exp8-\d{8}-\d{6}-[0-9a-f]{4}", found) for found in ids)


# arms that are alike


def test_arms_that_ask_for_the_same_are_invalid(exp8: Campaign) -> None:
    exp8.arms["candidate"] = Arm(serve={"async_scheduling": False})
    with pytest.raises(InvalidError, match="arms identical: base and candidate ask for the same"):
        planned(exp8)


def test_arms_that_say_the_same_in_two_spellings_are_invalid(exp8: Campaign) -> None:
    exp8.arms = {"base": Arm(serve={"max_num_seqs": 4}), "candidate": Arm(serve={"max_num_seqs": "4"})}
    with pytest.raises(InvalidError, match="arms identical"):
        planned(exp8)


def test_equal_arms_are_what_aa_is_about(compose) -> None:
    plan = planned(compose("exp=aa"))
    assert plan.arms["base"].digest == plan.arms["candidate"].digest


# what is registered


def test_the_claims_of_exp8_are_registered_as_house_md_says(exp8: Campaign) -> None:
    claims = planned(exp8).claims
    speed, acceptance = claims["step_rate"], claims["acceptance"]
    assert (speed.kind, speed.bound, speed.scale, speed.direction) == (
        ClaimKind.superiority,
        0.0,
        Scale.LOG,
        Direction.HIGHER,
    )
    assert (acceptance.kind, acceptance.bound, acceptance.scale) == (ClaimKind.equivalence, 2.0, Scale.LINEAR)
    assert acceptance.metric == "acceptance_pos1_pp"


@pytest.mark.parametrize("metric", ["ttft_median_s", "tpot_s"])
def test_of_a_time_less_is_better(exp8: Campaign, metric: str) -> None:
    assert planned(claim(exp8, metric=metric, gate_pct=0.0)).claims["step_rate"].direction is Direction.LOWER


@pytest.mark.parametrize(
    ("fields", "takes", "found"),
    [
        ({"gate_pct": 1.0, "margin_pct": 3.0}, "gate_pct", "gate_pct, margin_pct"),
        ({"margin_pct": 3.0}, "gate_pct", "margin_pct"),
        ({}, "gate_pct", "none"),
        ({"kind": ClaimKindName.equivalence, "gate_pct": 1.0}, "margin_pct", "gate_pct"),
        ({"kind": ClaimKindName.equivalence, "margin_pp": 1.0}, "margin_pct", "margin_pp"),
        (
            {"kind": ClaimKindName.equivalence, "metric": "acceptance_pos1_pp", "margin_pct": 1.0},
            "margin_pp",
            "margin_pct",
        ),
        ({"kind": ClaimKindName.non_inferiority, "gate_pct": 1.0}, "margin_pct", "gate_pct"),
    ],
)
def test_a_bound_of_another_kind_is_refused_and_never_ignored(exp8: Campaign, fields, takes: str, found: str) -> None:
    with pytest.raises(ConfigError, match=f"claims.step_rate: .* takes {takes}, found {found}"):
        planned(claim(exp8, **fields))


def test_no_difference_takes_no_bound(compose) -> None:
    campaign = compose("exp=aa")
    next(iter(campaign.claims.values())).margin_pct = 1.0
    with pytest.raises(ConfigError, match="takes no bound, found margin_pct"):
        planned(campaign)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"metric": "speed", "gate_pct": 0.0}, "no metric 'speed'; there are step_per_s"),
        ({"metric": "acceptance_pos0_pp", "gate_pct": 0.0}, "no metric 'acceptance_pos0_pp'"),
        ({"gate_pct": float("nan")}, "found nan"),
        ({"gate_pct": -200.0}, "found -200"),
        ({"gate_pct": 0.0, "expect_pct": [6, 1]}, "swap its ends"),
        ({"gate_pct": 0.0, "expect_pct": 6}, r"found 6, wanted \[low, high\]"),
        ({"gate_pct": 0.0, "expect_pct": [1, 2, 3]}, r"wanted \[low, high\]"),
        ({"gate_pct": 0.0, "expect_pct": ["a", "b"]}, r"wanted \[low, high\]"),
        ({"kind": ClaimKindName.equivalence, "margin_pct": -2.0}, "over 0"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_a_claim_that_cannot_be_judged_is_refused(exp8: Campaign, fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=f"step_rate.*{sentence}"):
        planned(claim(exp8, **fields))


@pytest.mark.parametrize("gate", ["step_rate", "acceptance"])
def test_a_gate_without_its_claim_is_refused(exp8: Campaign, gate: str) -> None:
    del exp8.claims[gate]
    with pytest.raises(ConfigError, match=f"gate {gate} is on, but .* no claim '{gate}'"):
        planned(exp8)


def test_a_claim_that_no_gate_judges_is_refused(exp8: Campaign) -> None:
    exp8.claims["ttft"] = ClaimConfig(kind=ClaimKindName.superiority, metric="ttft_median_s", gate_pct=0.0)
    with pytest.raises(ConfigError, match=r"claims\.ttft: no gate judges it"):
        planned(exp8)


@pytest.mark.parametrize("gate", ["step_rate", "acceptance"])
def test_a_gate_that_is_turned_off_says_what_becomes_of_its_claim(exp8: Campaign, gate: str) -> None:
    setattr(exp8.gates, gate, None)
    with pytest.raises(ConfigError, match=rf"claims.{gate}.*~claims\.{gate}"):
        planned(exp8)


def test_no_difference_needs_its_claim(compose) -> None:
    campaign = compose("exp=aa")
    campaign.claims.clear()
    campaign.arms["candidate"].serve["max_num_seqs"] = 8
    with pytest.raises(ConfigError, match="no_difference"):
        planned(campaign)


# the digest of what is registered


@pytest.fixture
def prompts(exp8: Campaign, tmp_path: Path) -> Path:
    """A prompt file of our own."""
    file = tmp_path / "decode.jsonl"
    file.write_text(Path(exp8.workload.prompts).read_text(encoding="utf-8"), encoding="utf-8")
    exp8.workload.prompts = str(file)
    return file


def test_a_changed_prompt_changes_the_registered_digest(exp8: Campaign, prompts: Path) -> None:
    before = planned(exp8).claims_digest
    lines = [json.loads(line) for line in prompts.read_text(encoding="utf-8").splitlines()]
    lines[-1]["prompt"] += "."
    prompts.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert planned(exp8).claims_digest != before


def test_where_the_prompts_lie_does_not_change_the_digest(exp8: Campaign, prompts: Path, compose) -> None:
    assert exp8.workload.prompts == str(prompts)
    assert planned(exp8).claims_digest == planned(compose("exp=exp8")).claims_digest


@pytest.mark.parametrize(
    "change",
    [
        lambda c: claim(c, gate_pct=1.0),
        lambda c: own_schedule(c, "ABBA ABBA"),
        lambda c: setattr(c.bracket, "looks", [8, 12]),
        lambda c: setattr(c.gates, "korean", None),
        lambda c: setattr(c.claims["acceptance"], "margin_pp", 3.0),
    ],
    ids=["gate", "schedule", "looks", "a prompt set less", "margin"],
)
def test_another_registration_has_another_digest(exp8: Campaign, change) -> None:
    before = planned(exp8).claims_digest
    change(exp8)
    assert planned(exp8).claims_digest != before


def test_the_run_does_not_change_what_is_registered(exp8: Campaign) -> None:
    assert planned(exp8, "run-1").claims_digest == planned(exp8, "run-2").claims_digest


def test_every_prompt_set_that_a_gate_needs_is_loaded(exp8: Campaign) -> None:
    assert {name: len(found) > 0 for name, found in planned(exp8).prompts.items()} == {
        "decode": True, "quality": True, "korean": True,
    }  # fmt: skip


def test_a_gate_that_is_off_sends_no_prompts(exp8: Campaign) -> None:
    exp8.gates.quality = None
    assert set(planned(exp8).prompts) == {"decode", "korean"}


def test_a_plan_can_be_written_as_json_and_planned_again(exp8: Campaign) -> None:
    from campaign.config import from_plain

    first = planned(exp8)
    data = json.loads(json.dumps(first.plain(), allow_nan=False))
    again = make(from_plain(data["config"]), data["run_id"])
    assert (again.claims_digest, again.schedule, again.flipped) == (
        data["claims_digest"],
        first.schedule,
        first.flipped,
    )
    assert data["schedule"] == " ".join(first.schedule.blocks)


# what the plan can see


def test_the_detectable_effect_is_that_of_the_statistics(exp8: Campaign) -> None:
    """house.md: a boot's sd of 5.4 % is an MDE of about 13 % with 8 boots and 8 % with 16."""
    exp8.host.history_sd_pct, exp8.host.history_df = 5.4, 10
    exp8.bracket.looks = []
    ((sd, mde),) = detectable(planned(exp8))
    assert (sd, mde) == (pytest.approx(5.4), pytest.approx(13, abs=0.6))
    own_schedule(exp8, "ABBA BAAB ABBA BAAB")
    ((_, mde),) = detectable(planned(exp8))
    assert mde == pytest.approx(8, abs=0.6)


def test_a_host_without_history_is_guessed_three_times(exp8: Campaign) -> None:
    found = detectable(planned(exp8))
    assert [sd for sd, _ in found] == [1.0, 2.0, 5.0]
    assert [mde for _, mde in found] == sorted(mde for _, mde in found if mde is not None)


def test_a_screen_can_see_nothing(exp8: Campaign) -> None:
    own_schedule(exp8, "ABA")
    assert [mde for _, mde in detectable(planned(exp8))] == [None, None, None]
    assert underpowered(planned(exp8)) is None


def test_an_underpowered_plan_says_so_and_is_made_all_the_same(exp8: Campaign) -> None:
    exp8.host.history_sd_pct, exp8.host.history_df = 9.0, 10
    said = underpowered(planned(exp8))
    assert said is not None
    assert re.match(
        r"underpowered: at a boot sd of 9 % 16 boots see 15\.\d %.*3\.5 % from the gate; about \d+ boots", said
    )


def test_an_underpowered_plan_is_refused_when_that_is_asked(exp8: Campaign) -> None:
    exp8.host.history_sd_pct, exp8.host.history_df, exp8.bracket.refuse_underpowered = 9.0, 10, True
    with pytest.raises(ConfigError, match="underpowered"):
        planned(exp8)


def test_a_plan_with_power_enough_is_not_refused(exp8: Campaign) -> None:
    exp8.host.history_sd_pct, exp8.host.history_df, exp8.bracket.refuse_underpowered = 1.0, 10, True
    assert underpowered(planned(exp8)) is None


def test_minutes_grow_with_the_boots(exp8: Campaign) -> None:
    assert planned(exp8).minutes(8) == pytest.approx(8 * exp8.engine.minutes_per_boot)
