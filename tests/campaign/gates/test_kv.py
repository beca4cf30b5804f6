"""Twin of campaign.gates.kv."""

import pytest

from campaign.gates.kv import Kv
from tests.fakes.evidence import boot, bracket, died, kv
from verdict.words import Verdict


def test_enough_blocks_in_both_arms_pass_and_both_batches_in_flight_are_shown():
    result = Kv().check(bracket(base={"kv": kv()}, candidate={"kv": kv(batches_in_flight=2)}))
    assert result.verdict is Verdict.PASS
    assert result.line == (
        "PASS          KV          base 100 >= 68 blocks (KV in flight x1)   "
        "candidate 100 >= 68 blocks (KV in flight x2)"
    )


def test_the_needed_blocks_are_those_of_the_house():
    result = Kv().check(bracket(base={"kv": kv()}, candidate={"kv": kv(batches_in_flight=2)}))
    assert result.details[1] == "candidate needs 4 x ceil((2048 + 2 x 6) / 128) = 68 blocks, has 100"


def test_too_few_blocks_fail_and_name_arm_capacity_and_need():
    result = Kv().check(bracket(base={"kv": kv()}, candidate={"kv": kv(blocks=60)}))
    assert result.verdict is Verdict.FAIL
    assert "candidate has 60 blocks, needs 68" in result.line


def test_the_smallest_boot_of_an_arm_counts():
    result = Kv().check(bracket(base={"kv": kv()}, candidate={"kv": kv()}, at={7: {"kv": kv(blocks=67)}}))
    assert result.verdict is Verdict.FAIL
    assert "base has 67 blocks, needs 68 (boot 07-A" in result.line


def test_arms_of_different_capacity_pass_but_it_is_told():
    result = Kv().check(bracket(base={"kv": kv()}, candidate={"kv": kv(blocks=90)}))
    assert result.verdict is Verdict.PASS
    assert "the arms differ in capacity: base 100 blocks, candidate 90" in result.details


@pytest.mark.case("B12")
def test_a_log_that_contradicts_its_blocks_is_told():
    result = Kv().check(bracket(base={"kv": kv(capacity_tokens=290864)}, candidate={"kv": kv()}))
    assert any("base contradicts itself: 290,864 tokens" in line for line in result.details)


def test_a_boot_without_kv_facts_cannot_be_judged():
    result = Kv().check(bracket(base={"kv": kv()}))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "boot 02-B reported no KV budget" in result.line


def test_a_failed_boot_is_the_reason_why_nothing_is_judged():
    result = Kv().check(bracket(base={"kv": kv()}, candidate={"kv": kv()}, at={5: died()}))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "boot 05-B failed: engine died: SIGKILL (-9)" in result.line


def test_a_boot_that_stopped_for_its_kv_is_a_fail_not_a_gap():
    result = Kv().check(bracket(base={"kv": kv()}, candidate={"kv": kv()}, at={5: died(kv=kv(blocks=1))}))
    assert result.verdict is Verdict.FAIL


def test_one_boot_can_be_judged_alone():
    assert Kv().check_boot(boot(kv=kv())).verdict is Verdict.PASS
    assert Kv().check_boot(boot(kv=kv(blocks=67))).verdict is Verdict.FAIL
    assert Kv().check_boot(boot()).verdict is Verdict.INCONCLUSIVE
