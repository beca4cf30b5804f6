import pytest

from verdict.errors import VerdictError
from verdict.schedule import Schedule, coin, mirrored, named, parse_schedule


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("ABA", ("ABA",)),
        ("ABBA", ("ABBA",)),
        ("ABBA BAAB", ("ABBA", "BAAB")),
        ("ABBABAAB", ("ABBA", "BAAB")),
        ("ABABA", ("ABABA",)),
        ("  ABBA  BAAB ABBA", ("ABBA", "BAAB", "ABBA")),
    ],
)
def test_a_text_becomes_blocks(text: str, blocks: tuple[str, ...]) -> None:
    assert parse_schedule(text) == Schedule(blocks)


@pytest.mark.parametrize("text", ["abba", "ABBA,BAAB", "ABC", "A-B-A", "ABBA\tBAAB"])
def test_other_characters_are_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(VerdictError, match=r"holds only A, B and spaces, found .* write for example 'ABBA BAAB'"):
        parse_schedule(text)


@pytest.mark.parametrize("text", ["", "   "])
def test_an_empty_schedule_is_refused(text: str) -> None:
    with pytest.raises(VerdictError, match="found nothing"):
        parse_schedule(text)


@pytest.mark.parametrize("text", ["A", "B", "AB", "AAAA", "BBBBBBBB", "AB "])
def test_a_collinear_schedule_is_refused(text: str) -> None:
    with pytest.raises(VerdictError, match="arm and drift are not separable with this schedule"):
        parse_schedule(text)


@pytest.mark.parametrize(("text", "is_screen"), [("ABA", True), ("ABBA", True), ("ABABA", False), ("ABBA BAAB", False)])
def test_a_schedule_without_an_error_bar_of_its_own_is_a_screen(text: str, is_screen: bool) -> None:
    assert parse_schedule(text).is_screen is is_screen


def test_letters_and_boots_run_over_all_blocks() -> None:
    schedule = parse_schedule("ABBA BAAB ABBA")
    assert (schedule.letters, schedule.n_boots, schedule.own_df) == ("ABBABAABABBA", 12, 9)


def test_the_named_brackets_are_those_of_the_house() -> None:
    assert named("screen").letters == "ABA"
    assert named("verdict") == Schedule(("ABBA", "BAAB"))


def test_an_unknown_name_says_which_there_are() -> None:
    with pytest.raises(VerdictError, match="named screen or verdict, found 'duel'"):
        named("duel")


def test_a_mirrored_schedule_exchanges_the_arms_and_mirrors_back() -> None:
    schedule = parse_schedule("ABBA BAAB")
    assert mirrored(schedule) == Schedule(("BAAB", "ABBA"))
    assert mirrored(mirrored(schedule)) == schedule


# The low bit of the first byte of `printf 'digest\ncampaign-0' | sha256sum`, and so on.
def test_the_coin_is_the_same_whenever_it_is_thrown() -> None:
    assert [coin("digest", f"campaign-{i}") for i in range(8)] == [
        False, True, True, True, True, False, False, True,
    ]  # fmt: skip


def test_the_coin_depends_on_claim_and_on_campaign_and_is_fair() -> None:
    by_campaign = [coin("digest", str(i)) for i in range(2000)]
    by_claim = [coin(str(i), "campaign") for i in range(2000)]
    assert 900 < sum(by_campaign) < 1100
    assert 900 < sum(by_claim) < 1100


def test_the_coin_does_not_confuse_where_one_text_ends() -> None:
    assert any(coin(f"{i}a", "b") != coin(f"{i}", "ab") for i in range(20))
