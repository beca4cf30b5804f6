"""Twin of campaign.gates.outputs."""

from dataclasses import replace

import pytest

from campaign.evidence import Again
from campaign.gates.outputs import Outputs
from tests.fakes.evidence import VERDICT, answer, bracket, died
from verdict.words import Verdict

SAME = {"answers": (answer("q1"), answer("k1", "서울은 한국의 수도입니다.", prompt_set="korean"))}
OTHER = {"answers": (answer("q1"), answer("k1", "서울은 한국의 도시입니다.", prompt_set="korean"))}


def check(**fields):
    return Outputs().check(bracket(**({"base": SAME, "candidate": SAME} | fields)))


def test_equal_answers_in_all_boots_pass():
    result = check()
    assert result.verdict is Verdict.PASS
    assert result.line == "PASS          outputs     2/2 prompts equal over 8 boots"


def test_a_difference_in_one_boot_fails_and_shows_both_texts_around_it():
    result = check(at={5: OTHER})
    assert result.verdict is Verdict.FAIL
    assert "arms differ on 1/2 prompts: first korean/k1 at token 8" in result.line
    assert result.details[0] == "first divergence: korean/k1 at token 8, character 8"
    assert "01-A: '서울은 한국의 ' | '수도입니다.'" in result.details[1]
    assert "05-B: '서울은 한국의 ' | '도시입니다.'" in result.details[2]


def test_other_tokens_under_the_same_text_are_a_difference():
    same_text = {"answers": (answer("q1", token_ids=(1, 2)), SAME["answers"][1])}
    assert check(candidate=same_text).verdict is Verdict.FAIL


def test_texts_are_compared_where_an_engine_gives_no_token_ids():
    silent = {"answers": (answer("q1", token_ids=()), SAME["answers"][1])}
    assert check(base=silent).verdict is Verdict.PASS
    differing = {"answers": (answer("q1", "안녕하십니까.", token_ids=()), SAME["answers"][1])}
    result = check(base=silent, candidate=differing)
    assert "quality/q1 at character 3" in result.line


def test_an_answer_that_stops_sooner_is_a_difference():
    shorter = {"answers": (answer("q1", "안녕하세요"), SAME["answers"][1])}
    assert "at token 5" in check(candidate=shorter).line


@pytest.mark.case("H9")
def test_base_that_differs_from_itself_is_not_a_fail():
    result = check(at={4: OTHER}, candidate=OTHER)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "not deterministic here: base differs from itself on 1/2 prompts" in result.line
    assert "base against itself: korean/k1" in result.details[0]


def test_a_candidate_that_differs_from_itself_fails_against_a_clean_control():
    result = check(at={2: OTHER})
    assert result.verdict is Verdict.FAIL
    assert any(line.startswith("candidate against itself") for line in result.details)


def test_one_base_boot_alone_is_no_control():
    lone = bracket("AB", base=SAME, candidate=OTHER)
    result = Outputs().check(lone)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "no second base boot" in result.line


@pytest.mark.case("H14")
def test_another_rendered_prompt_is_invalid_even_where_the_answers_are_equal():
    longer = {"answers": tuple(replace(a, prompt_tokens=51) for a in SAME["answers"])}
    result = check(candidate=longer)
    assert result.verdict is Verdict.INVALID
    assert "12 tokens in boot 01-A and 51 in boot 02-B" in result.line


def test_a_fixed_length_answer_that_ends_by_itself_is_invalid():
    lengths = [answer(f"d{n}", "가" * n, prompt_set="decode", finish_reason="length") for n in (310, 2048, 95)]
    stopped = {"answers": (lengths[0], lengths[1], replace(lengths[2], finish_reason="stop"))}
    result = check(base=stopped, candidate=stopped)
    assert result.verdict is Verdict.INVALID
    assert "early stop: decode/d95 of boot 01-A ended after 95 tokens (stop)" in result.line


def test_one_answer_of_a_hundred_is_a_fail_before_anything_is_compared():
    many = {"answers": tuple(answer(f"q{i}") for i in range(100))}
    result = check(base=many, candidate={"answers": many["answers"][:1]})
    assert result.verdict is Verdict.FAIL
    assert "boot 02-B (candidate) answered 1 of 100 prompts" in result.line


def test_a_failed_boot_leaves_it_open():
    result = check(at={5: died()})
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "boot 05-B failed" in result.line


def test_a_difference_seen_before_a_failed_boot_is_a_fail():
    assert check(at={2: OTHER, 5: died()}).verdict is Verdict.FAIL


def test_void_boots_are_not_compared_but_their_place_must_be_filled():
    result = check(at={5: {"status": "void", "reason": "foreign CPU 0.6 core", "answers": OTHER["answers"]}})
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "boot 05-B void: foreign CPU" in result.line


def test_a_void_boot_that_was_measured_again_does_no_harm():
    measured = bracket(base=SAME, candidate=SAME)
    void = replace(measured.boots[4], index=9, status="void", reason="foreign CPU")
    assert Outputs().check(replace(measured, boots=(*measured.boots, void))).verdict is Verdict.PASS


def test_no_answers_cannot_be_compared():
    assert Outputs().check(bracket(VERDICT)).verdict is Verdict.INCONCLUSIVE


def test_a_lone_surrogate_is_shown_not_raised():
    assert check(candidate={"answers": (answer("q1", "안\ud83d"), SAME["answers"][1])}).verdict is Verdict.FAIL


# H9, H10: what differs, and whether it is more than base differs from itself

MANY = {"answers": tuple(answer(f"q{i}", "a" * 27 + "b") for i in range(20))}
DIVERGED = {"answers": tuple(answer(f"q{i}", "a" * 27 + "c") for i in range(20))}


@pytest.mark.case("H10")
def test_all_pairs_diverge_and_no_control_does():
    result = check(base=MANY, candidate=DIVERGED)
    assert result.verdict is Verdict.FAIL
    assert "arms differ on 20/20 prompts: first quality/q0 at token 27 (20 not classified)" in result.line


@pytest.mark.case("H9", "H10")
def test_all_controls_diverge_as_the_pairs_do():
    result = check(base=MANY, candidate=DIVERGED, at={4: DIVERGED})
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "base differs from itself on 20/20 prompts; arms differ on 20/20 prompts" in result.line


def but(many, numbers):
    """Base's answers, some of which it gives otherwise this time."""
    return {"answers": tuple(replace(a, text="z", token_ids=(0,)) if i in numbers else a for i, a in enumerate(many))}


@pytest.mark.case("H9")
@pytest.mark.parametrize(
    ("theirs", "verdict"),
    [(range(20), Verdict.FAIL), (range(2, 8), Verdict.INCONCLUSIVE), (range(4), Verdict.INCONCLUSIVE)],
    ids=["far above the floor", "6 prompts against 2 are not", "on the floor"],
)
def test_the_candidate_fails_only_above_the_floor_of_base_against_itself(theirs, verdict):
    result = check(base=MANY, candidate=but(MANY["answers"], set(theirs)), at={4: but(MANY["answers"], {0, 1})})
    assert result.verdict is verdict
    assert "base differs from itself on 2/20 prompts" in result.line


def test_a_control_within_a_boot_counts_as_one_between_boots():
    restless = MANY | {"again": (Again("q3", "quality", 27, (97,) * 27 + (120,), {"120": -0.1}),)}
    result = check(base=MANY, candidate=MANY | {"answers": MANY["answers"]}, at={4: restless})
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "base differs from itself on 1/20 prompts" in result.line


def asked_again(gap):
    """Both arms asked again about q0: each prefers its own token to the other's by so many nats."""
    base = MANY | {"again": (Again("q0", "quality", 27, (97,) * 27 + (98,), {"98": -0.1, "99": -0.1 - gap}),)}
    theirs = but(MANY["answers"], set())["answers"]
    theirs = (replace(theirs[0], text="a" * 27 + "c", token_ids=(97,) * 27 + (99,)), *theirs[1:])
    again = (Again("q0", "quality", 27, (97,) * 27 + (99,), {"99": -0.1, "98": -0.1 - gap}),)
    return {"base": base, "candidate": {"answers": theirs, "again": again}}


@pytest.mark.parametrize(
    ("gap", "kind", "lenient"),
    [(0.05, "1 near-tie", Verdict.PASS), (3.0, "1 real", Verdict.FAIL)],
    ids=["near-tie", "real"],
)
def test_a_near_tie_is_told_from_a_real_difference_and_is_let_pass_only_when_asked(gap, kind, lenient):
    result = check(**asked_again(gap))
    assert result.verdict is Verdict.FAIL
    assert kind in result.line
    assert f"base prefers its token by {gap:.2f} nats, the candidate its own by {gap:.2f}" in result.details[-1]
    assert result.numbers[f"differing_{kind.split()[1].replace('-', '_')}"] == 1
    assert Outputs(allow_near_ties=True).check(bracket(**asked_again(gap))).verdict is lenient


def lenient(found, **fields):
    return Outputs(allow_near_ties=True).check(bracket(**(found | fields)))


def test_a_token_that_its_own_model_rejects_is_no_near_tie():
    """The answer holds token 99 although the candidate itself prefers base's 98 by 9 nats."""
    found = asked_again(0.05)
    (seen,) = found["candidate"]["again"]
    found["candidate"]["again"] = (replace(seen, token_ids=(97,) * 27 + (98,), logprobs={"98": -0.001, "99": -9.0}),)
    result = lenient(found)
    assert result.verdict is Verdict.FAIL
    assert "1 real" in result.line
    assert "the candidate its own by -9.00" in result.details[-1]


def test_log_probabilities_behind_other_tokens_classify_nothing():
    found = asked_again(0.05)
    (seen,) = found["candidate"]["again"]
    found["candidate"]["again"] = (replace(seen, token_ids=(1, *seen.token_ids[1:])),)
    result = lenient(found)
    assert result.verdict is Verdict.FAIL
    assert "1 not classified" in result.line


@pytest.mark.parametrize(
    ("text", "kind"), [("a" * 27 + "d", "1 not classified"), ("\ufffd", "1 corruption")], ids=["otherwise", "damaged"]
)
def test_every_boots_own_divergence_is_classified_and_the_gravest_counts(text, kind):
    found = asked_again(0.05)
    theirs = found["candidate"]["answers"]
    other = {"answers": (replace(theirs[0], text=text, token_ids=tuple(map(ord, text))), *theirs[1:])}
    assert lenient(found).verdict is Verdict.PASS
    result = lenient(found, at={5: other})
    assert result.verdict is Verdict.FAIL
    assert f"arms differ on 1/20 prompts: first quality/q0 at token 27 ({kind})" in result.line


def test_a_damaged_answer_is_corruption_whatever_the_log_probabilities_say():
    found = asked_again(0.05)
    broken = replace(found["candidate"]["answers"][0], text="a" * 27 + "\ufffd")
    theirs = {"answers": (broken, *found["candidate"]["answers"][1:]), "again": found["candidate"]["again"]}
    result = Outputs(allow_near_ties=True).check(bracket(base=found["base"], candidate=theirs))
    assert result.verdict is Verdict.FAIL
    assert "1 corruption" in result.line


@pytest.mark.case("H5")
def test_the_same_text_in_another_normal_form_is_told_as_a_change():
    decomposed = {"answers": (answer("q1", "\u1100\u1161"), SAME["answers"][1])}
    result = check(base={"answers": (answer("q1", "가"), SAME["answers"][1])}, candidate=decomposed)
    assert result.verdict is Verdict.FAIL
    assert "1 another normal form of the same text" in result.line


@pytest.mark.case("H2")
def test_drawn_answers_are_never_compared_token_by_token():
    ours, theirs = (answer("k1", text, prompt_set="korean_sampled", sampled=True) for text in ("하늘", "바다"))
    result = check(base={"answers": (*SAME["answers"], ours)}, candidate={"answers": (*SAME["answers"], theirs)})
    assert result.verdict is Verdict.PASS
    assert "2/2 prompts equal" in result.line


def test_a_token_that_is_not_among_the_likeliest_is_no_near_tie_and_its_gap_a_least() -> None:
    found = asked_again(0.05)
    (seen,) = found["candidate"]["again"]
    far = found["candidate"] | {"again": (replace(seen, logprobs={"99": -0.1, "7": -0.2}),)}
    result = check(base=found["base"], candidate=far)
    assert "1 real" in result.line
    assert "the candidate its own by at least 0.10" in result.details[-1]


def test_many_divergences_are_told_in_bounds() -> None:
    result = check(base=MANY, candidate=DIVERGED)
    assert result.details[-1] == "and 10 more (10 not classified)"
    assert len(result.details) == 3 + 10 + 1
