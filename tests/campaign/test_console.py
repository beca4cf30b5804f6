"""What the operator sees, in the exact text."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from campaign.bracket.draft import discarded
from campaign.config import Campaign, ClaimConfig, ClaimKindName
from campaign.console import (
    format_boot,
    format_gate,
    format_plan,
    format_probe,
    format_verdict,
    format_witness,
    show,
)
from campaign.errors import ExitCode
from campaign.evidence import WitnessRow
from campaign.gates.base import GateResult
from campaign.gates.synthetic import label
from campaign.planning.could_see import format_resolution
from campaign.planning.plan import Plan, make
from campaign.told import report_tables
from tests.fakes.evidence import boot, died
from verdict.claims import Direction
from verdict.words import Verdict

ROOT = Path(__file__).resolve().parents[2]
METRICS = {"step_per_s": 151.26, "tok_per_s": 327.4, "acceptance_length": 2.164, "acceptance_pos1_pp": 71.26}
HELD = WitnessRow("async_dflash", "resolved", "async_scheduling", "True", "True", ok=True, source="EngineCore 0")
LOST = WitnessRow("async_dflash", "behaved", "batches_in_flight_max", ">= 2", "1", ok=False, source="EngineCore 0")


# a boot


def test_a_boot_is_one_line_with_what_it_gave_and_what_is_left() -> None:
    record = boot(3, "B", metrics=METRICS, witness=(HELD, HELD), seconds={"total": 61.4})
    assert format_boot(record, 8, 312.0) == [
        "boot 3/8  03-B candidate  151.3 step/s  327.4 tok/s at 2.16 tok/step in the window  "
        "pos1 71.3 % in the prompts  witness 2/2"
        "  (61 s, about 5 min left)"
    ]


def test_the_last_boot_has_nothing_left() -> None:
    assert format_boot(boot(8, "A", metrics={"step_per_s": 100.0}, seconds={"total": 9.0}), 8, None) == [
        "boot 8/8  08-A base       100.0 step/s  witness 0/0  (9 s)"
    ]


def test_a_boot_that_failed_shows_its_reason_and_its_log_and_no_number() -> None:
    record = boot(2, "B", **died("engine died: SIGKILL (-9)", metrics=METRICS), seconds={"total": 21.0})
    first, *log = format_boot(record, 8, None)
    assert first == "boot 2/8  02-B candidate  FAILED: engine died: SIGKILL (-9) (21 s)"
    assert [line.strip() for line in log] == ["| EngineCore died"]
    assert "step/s" not in " ".join([first, *log])


def test_an_invalid_boot_never_shows_a_number() -> None:
    """house.md: no number is ever printed for a patch that was not running."""
    record = boot(2, "B", status="invalid", reason="knob async_dflash is not behaved", metrics=METRICS)
    assert "151" not in " ".join(format_boot(record, 8, 100.0))


def test_tokens_a_second_are_never_shown_without_the_acceptance_length() -> None:
    """D11."""
    record = boot(1, metrics={"step_per_s": 100.0, "tok_per_s": 216.0})
    assert "tok/s" not in format_boot(record, 8, None)[0]


def test_an_engine_that_does_not_draft_shows_its_steps_alone() -> None:
    assert "pos1" not in format_boot(boot(1, metrics={"step_per_s": 100.0}), 8, None)[0]


def test_windows_that_were_discarded_are_told() -> None:
    """D12: discards are counted."""
    facts = discarded(("the clocks disagree", "window shared: 4 requests finished in it, 2 were ours"))
    line = format_boot(boot(1, metrics={"step_per_s": 100.0}, facts=facts), 8, None)[0]
    assert "2 disturbed windows discarded (window shared: 4 requests finished in it, 2 were ours)" in line
    assert facts["windows_discarded_because"].startswith("the clocks disagree | window shared")


def test_of_one_window_that_was_discarded_one_is_told_and_of_none_nothing() -> None:
    facts = [discarded(("somebody",)), {"windows_discarded": "1"}, discarded(()), {}]
    lines = [format_boot(boot(1, facts=one), 8, None)[0] for one in facts]
    assert "1 disturbed window discarded (somebody)" in lines[0]
    assert "1 disturbed window discarded  (" in lines[1], "of a journal that does not say why"
    assert not any("discarded" in line for line in lines[2:])


def test_a_boot_whose_acceptance_is_made_up_says_so_beside_its_figures() -> None:
    line = format_boot(boot(1, metrics=METRICS, facts={"synthetic": label(2.5)}), 8, None)[0]
    assert "synthetic acceptance (2.5 tokens a step, made up by the engine)" in line


# a witness, a gate, a verdict


def test_a_boot_of_a_logic_only_engine_shows_no_bare_speed():
    line = format_boot(boot(1, metrics=METRICS, facts={"logic_only": "Triton's interpreter"}), 8, None)[0]
    assert "logic only (Triton's interpreter):  151.3 step/s" in line


def test_the_witness_table_says_for_every_layer_what_was_wanted_and_found() -> None:
    head, held, lost = format_witness((HELD, LOST))
    assert head.split() == ["knob", "layer", "what", "wanted", "found", "from"]
    assert re.split(r"  +", held) == [
        "async_dflash",
        "resolved",
        "async_scheduling",
        "True",
        "True",
        "ok",
        "EngineCore 0",
    ]
    assert re.split(r"  +", lost)[-2:] == ["NOT OK", "EngineCore 0"]


def test_the_columns_of_the_witness_table_stand_under_each_other() -> None:
    lines = format_witness((HELD, LOST))
    assert len({line.index(word) for line, word in zip(lines, ("layer", "resolved", "behaved"), strict=True)}) == 1


def test_an_empty_witness_is_its_head_alone() -> None:
    assert len(format_witness(())) == 1


def test_a_stages_path_is_cut_to_its_address() -> None:
    row = replace(HELD, found=f"/some/where/stages/{'5f3c' * 16}/vllm/platforms/cpu.py")
    assert "stage 5f3c5f3c5f3c/vllm/platforms/cpu.py" in format_witness((row,))[1]


def test_a_gates_details_stand_under_its_line() -> None:
    result = GateResult("quality", Verdict.FAIL, "FAIL          quality     8/9", ("boxes: wanted '42', got '41'",))
    assert format_gate(result) == ["FAIL          quality     8/9", "              boxes: wanted '42', got '41'"]


@pytest.mark.parametrize(
    ("word", "code", "line"),
    [
        (Verdict.PASS, ExitCode.PASS, "verdict PASS (0)"),
        (Verdict.INCONCLUSIVE, ExitCode.INCONCLUSIVE, "verdict INCONCLUSIVE (3)"),
        (Verdict.INVALID, ExitCode.INVALID, "verdict INVALID (5)"),
    ],
    ids=str,
)
def test_the_last_line_is_the_verdict_and_its_code(word: Verdict, code: ExitCode, line: str) -> None:
    """house.md: `make run` prints `verdict <WORD> (<code>)` last."""
    assert format_verdict(word, code) == line


# a plan


def test_a_plan_shows_all_that_will_be_asked(exp8: Campaign) -> None:
    exp8.bracket.mirror = False
    text = "\n".join(format_plan(make(exp8, "exp8-20261130-120000-5f3c")))
    wanted = (
        "exp8-20261130-120000-5f3c\n",
        "  arm         candidate: overlays engine_report, async_dflash\n",
        "knob async_dflash=1 (VLLM_GLM53_ASYNC_DFLASH; experiment exp8)\n",
        "serve --no-async-scheduling (experiment exp8)\n",
        "serve --max-num-seqs 4 (engine reference_cpu)\n",
        "knob prefix_cache=auto (--no-enable-prefix-caching; default of knobs.toml)  "
        "auto: dflash reads KV that cache hits never wrote\n",
        "knob model_runner=unset (VLLM_USE_V2_MODEL_RUNNER not given; default of knobs.toml)\n",
        "env OMP_NUM_THREADS=1 (engine reference_cpu)\n",
        "method dflash, K=5\n",
        "  claim       step_rate: superiority on step_per_s, gate >= +0",
        "  gates       kv, quality, korean, outputs, acceptance, step_rate\n",
        "  bracket     ABBA BAAB ABBA BAAB: 8, 12 or 16 boots (A is base), about 10 to 19 minutes\n",
        "  looks       after 8, 12 or 16 boots, at 97.8 % each (95.3 % for a margin)",
    )
    assert [line for line in wanted if line not in text] == []


def test_a_plan_says_by_what_the_arms_differ_and_a_knobs_own_variable_is_not_told_twice(exp8: Campaign) -> None:
    exp8.arms["candidate"].serve["max_num_seqs"] = 2
    exp8.arms["candidate"].knobs["prefix_cache"] = "1"
    line = next(line for line in format_plan(make(exp8, "run-1")) if line.startswith("  differ by   "))
    assert set(line.removeprefix("  differ by   ").split(", ")) == {
        "overlay async_dflash none -> staged",
        "knob async_dflash none -> 1",
        "knob prefix_cache auto -> 1",
        "serve async_scheduling false -> none",
        "serve max_num_seqs 4 -> 2",
    }


def test_equal_arms_differ_by_nothing(compose) -> None:
    assert "  differ by   nothing" in format_plan(make(compose("exp=aa"), "run-1"))


@pytest.mark.parametrize(("minutes", "words"), [(0.1, "1 minute"), (1.0, "1 minute"), (2.0, "2 minutes")])
def test_minutes_are_counted_in_words_that_agree(exp8: Campaign, minutes: float, words: str) -> None:
    exp8.engine.minutes_per_boot, exp8.bracket.looks = minutes / 8, []
    assert any(line.endswith(f": 8 boots (A is base), about {words}") for line in format_plan(unmirrored(exp8)))


def unmirrored(campaign: Campaign) -> Plan:
    campaign.bracket.mirror = False
    return make(campaign, "run-1")


def test_a_probe_shows_the_one_arm_that_it_starts_with_its_notes(compose, tmp_path: Path) -> None:
    (tmp_path / "team.env").write_text("PREFIX_CACHE=0\n")
    profile = f"engine.profile={tmp_path}/team.env"
    text = "\n".join(format_probe(make(compose("exp=exp8", "arm=base", profile), "run-1")))
    assert "arm         base: overlays engine_report" in text
    assert "serve --no-async-scheduling (experiment exp8)" in text
    assert re.search(r"note +team\.env:1: PREFIX_CACHE=0 is read as auto", text)
    assert "candidate" not in text


def test_a_mirrored_schedule_is_said_to_be_one(exp8: Campaign) -> None:
    plan = next(p for p in (make(exp8, f"run-{i}") for i in range(64)) if p.flipped)
    assert "  bracket     BAAB ABBA BAAB ABBA, mirrored by its coin: 8, 12 or 16 boots" in "\n".join(format_plan(plan))


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        (ClaimConfig(ClaimKindName.superiority, "step_per_s", gate_pct=-5.0), r"gate >= -5 %"),
        (
            ClaimConfig(ClaimKindName.equivalence, "step_per_s", margin_pct=3.0),
            r"within \+-3 % \(-2\.91 to \+3\.00 %, symmetric in ln\) \(registered",
        ),
        (ClaimConfig(ClaimKindName.equivalence, "acceptance_pos1_pp", margin_pp=2.0), r"within \+-2 pp \(registered"),
        (
            ClaimConfig(ClaimKindName.non_inferiority, "step_per_s", margin_pct=3.0),
            r"at most 3 % worse \(down to -2\.91 %, in ln\)",
        ),
    ],
    ids=lambda value: value.kind.value if isinstance(value, ClaimConfig) else "",
)
def test_a_claim_says_its_bound_with_its_unit(exp8: Campaign, claim: ClaimConfig, words: str) -> None:
    exp8.claims["step_rate"] = claim
    assert re.search(words, "\n".join(format_plan(make(exp8, "run-1"))))


def test_an_underpowered_plan_is_noted_and_runs(exp8: Campaign) -> None:
    exp8.host.history_sd_pct, exp8.host.history_df = 9.0, 10
    assert re.search(r"note +underpowered: .* it runs all the same", "\n".join(format_resolution(make(exp8, "run-1"))))


def test_what_could_be_seen_is_told_of_the_metric_that_is_claimed(exp8: Campaign) -> None:
    exp8.host.history_sd_pct, exp8.host.history_df = 1.0, 30
    plan = make(exp8, "run-1")
    assert format_resolution(plan)[0].startswith("  could see   step/s 3.0 % at a boot sd of 1 % (")
    points = replace(plan, claims={"acceptance": plan.claims["acceptance"]})
    assert format_resolution(points)[0] == (
        "  could see   nothing is said before the first boot: no claim here is on a speed or a time"
    )
    ttft = replace(plan.claims["step_rate"], metric="ttft_warm_s", direction=Direction.LOWER)
    (first, *_) = format_resolution(replace(plan, claims={"ttft": ttft}))
    assert first.startswith("  could see   TTFT warm 3.0 % at a boot sd of 1 %, 6.1 %")
    assert "(guess: a host's history is of step/s only; 80 % power; after 8 boots)" in first


def test_a_schedule_of_little_use_is_told_before_the_first_boot_and_in_the_report(exp8: Campaign) -> None:
    exp8.bracket.schedule, exp8.bracket.looks, exp8.bracket.mirror = "AAAABBBB", [], False
    plan = make(exp8, "run-1")
    word = "AAAABBBB gives 4.2 times the variance of a standard schedule of as many boots, ABBA BAAB ..."
    assert f"  note        {word}" in format_resolution(plan)
    assert ("schedule", f"AAAABBBB (A is base); {word}") in report_tables.facts(exp8, plan.evidence(())).rows


# printing


def test_lines_are_shown_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    show("one")
    show(["two", "삼"])
    assert capsys.readouterr().out == "one\ntwo\n삼\n"


def test_a_terminal_without_korean_shows_the_rest(command) -> None:
    done = command(
        "exp=exp8", "hypothesis='한국어 가설이다'", "dry_run=true", env={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "hypothesis  ??? ????\n" in done.stdout


def test_a_reader_that_leaves_early_is_no_fault_of_ours() -> None:
    """`... | head -1`"""
    code = "from campaign.console import show; import time\nfor i in range(200): show(str(i)); time.sleep(0.005)"
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        complaints = process.stderr.read().decode()
    assert (complaints, process.returncode) == ("", 0)
