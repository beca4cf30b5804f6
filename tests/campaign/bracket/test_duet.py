"""What a duet is made of, without an engine: its plan, the order of its requests, its blame, base beside base."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from campaign.boot_records import plain
from campaign.bracket import attempts
from campaign.bracket.bench import Bench
from campaign.bracket.duet import beside as beside_first
from campaign.bracket.duet import comparison
from campaign.bracket.reruns import BESIDE_ANOTHER, HOST_UNFIT, spent
from campaign.bracket.session import Progress, void_the_tainted, vouched_for
from campaign.bracket.trial import Keep
from campaign.brackets import BracketKind
from campaign.config import Campaign, Workload
from campaign.console import format_data, format_plan
from campaign.engine.memory import Memory, Watch
from campaign.errors import ConfigError, EngineFailedError, HostUnfitError
from campaign.evidence import BootRecord, Evidence
from campaign.gates.step_rate import StepRate
from campaign.journal import RunFolder
from campaign.names import BESIDE, UNLIKE
from campaign.planning.plan import PlannedBoot, make, rests_of
from campaign.prompting.checks import Prompt
from campaign.told import report_tables
from campaign.traffic import alternate
from campaign.traffic.alternate import Side, measure_in_turn, order
from campaign.traffic.client import Client
from tests.fakes.evidence import boot, step_rate
from tests.fakes.streams import Drafting, Reply, serving
from verdict.words import Verdict

PROMPTS = tuple(Prompt(f"p{i}", "decode", None, f"글 {i}", 20) for i in range(2))
TIMEOUT_S = 10.0
NO_WATCH = Watch(Memory(0, 0, 0), None, 0.0)
STEP_S = 0.08  # slow on purpose: scheduling noise of a busy machine stays below 1 % of the decode seconds


def workload(repeats: int = 1) -> Workload:
    return Workload(name="w", prompts="p.jsonl", max_tokens=20, repeats=repeats, warm_up_requests=2)


def duet(exp8: Campaign, schedule: str = "AB BA BA AB", **fields: object) -> Campaign:
    """The shipped experiment as a duet."""
    exp8.bracket = replace(exp8.bracket, kind=BracketKind.duet, schedule=schedule, looks=[], mirror=False, **fields)
    return exp8


# the order of the requests


@given(st.integers(1, 5), st.integers(1, 6))
def test_both_engines_get_the_same_requests_in_the_same_order_and_each_goes_first_as_often(turns: int, n: int) -> None:
    found = list(order(turns, n))
    assert [place for place, side in found if side == 0] == [place for place, side in found if side == 1]
    assert [place for place, side in found if side == 0] == list(range(turns * n))
    first = Counter(side for _, side in found[::2])
    assert abs(first[0] - first[1]) <= turns * (n % 2)
    if turns % 2 == 0:
        assert all(
            [side for place, side in found[::2] if place % n == prompt].count(0) == turns // 2 for prompt in range(n)
        )


def test_the_order_is_a_b_b_a() -> None:
    assert "".join("AB"[side] for _, side in order(1, 4)) == "ABBAABBA"


@contextmanager
def pair(tmp_path: Path, second: Callable[..., object] | None = None) -> Iterator[tuple[list[Side], list[str]]]:
    """Two engines that really draft, and who was asked for what, in order."""
    asked: list[str] = []

    def noting(name: str, drafting: Drafting) -> Callable[..., object]:
        def answer(body: dict[str, object]) -> object:
            asked.append(f"{name} {body['prompt']}")
            return (second or drafting.answer)(body) if name == "B" else drafting.answer(body)  # type: ignore[arg-type]

        return answer

    blamed: list[str] = asked

    @contextmanager
    def watched(name: str) -> Iterator[None]:
        try:
            yield
        except EngineFailedError:
            blamed.append(f"blamed {name}")
            raise

    one, two = Drafting(step_s=STEP_S), Drafting(step_s=STEP_S)
    with (
        serving(noting("A", one), {"/metrics": one.metrics}) as first,  # type: ignore[arg-type]
        serving(noting("B", two), {"/metrics": two.metrics}) as last,  # type: ignore[arg-type]
    ):
        yield (
            [
                Side(Client(server.url, "m"), tmp_path / name, lambda name=name: watched(name))  # type: ignore[misc]
                for name, server in (("A", first), ("B", last))
            ],
            asked,
        )


def test_a_window_of_two_engines_is_one_of_each_made_in_turn(tmp_path: Path) -> None:
    with pair(tmp_path) as (sides, asked):
        found = measure_in_turn(sides, PROMPTS, workload(), TIMEOUT_S)
    assert [line[0] for line in asked[-4:]] == [*"ABBA"]
    assert [[sample.prompt_id for sample in one.samples] for one in found] == [["p0", "p1"]] * 2
    assert all(one.metrics["step_per_s"] == pytest.approx(1 / STEP_S, rel=0.2) for one in found)
    assert {path.name for name in "AB" for path in (tmp_path / name).iterdir()} == {
        "metrics-before.txt", "metrics-after.txt"
    }  # fmt: skip


def test_the_engine_that_fails_in_the_window_is_the_one_that_is_blamed(tmp_path: Path) -> None:
    with (
        pair(tmp_path, second=lambda _: Reply.of(status=500)) as (sides, asked),
        pytest.raises(EngineFailedError),
    ):
        measure_in_turn(sides, PROMPTS, workload(), TIMEOUT_S)
    assert asked[-1] == "blamed B"


def test_a_rest_lies_before_every_turn_to_the_other_engine_and_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pair(tmp_path) as (sides, asked):
        monkeypatch.setattr(alternate, "time", SimpleNamespace(sleep=lambda seconds: asked.append(f"{seconds} s")))
        measure_in_turn(sides, PROMPTS, workload(2), TIMEOUT_S, rest_s=1.5)
    in_turn = "".join(line[0] if line[0] in "AB" else "-" for line in asked)
    assert in_turn == "-A-BB-A-B-AA-B", "the first one after B, which was scraped last"
    assert {line for line in asked if line[0] not in "AB"} == {"1.5 s"}
    assert in_turn.count("-") == rests_of(2, len(PROMPTS))


# the plan


def test_the_boots_of_a_duet_are_pairs_whose_first_starts_first_on_the_first_port(exp8: Campaign) -> None:
    plan = make(duet(exp8), "run-1")
    assert [(b.name, b.pair, b.place) for b in plan.boots[:4]] == [
        ("01-A", 1, 0), ("02-B", 1, 1), ("03-B", 2, 0), ("04-A", 2, 1)
    ]  # fmt: skip
    assert [[b.name for b in datum] for datum in plan.data][:2] == [["01-A", "02-B"], ["03-B", "04-A"]]
    assert [[b.name for b in datum] for datum in plan.beside] == [["aa-01-A", "aa-02-A"], ["aa-03-A", "aa-04-A"]]
    told = "\n".join(format_plan(plan))
    assert "AB BA BA AB: 4 pairs of boots, both live at once" in told
    assert "2 pairs of base beside base first" in told


def test_the_coin_exchanges_the_arms_of_every_pair(exp8: Campaign) -> None:
    exp8 = duet(exp8)
    exp8.bracket.mirror = True
    found = {" ".join(make(exp8, f"run-{i}").schedule.blocks) for i in range(20)}
    assert found == {"AB BA BA AB", "BA AB AB BA"}


def test_a_duet_of_equal_arms_needs_no_other_base_beside_base(compose: Callable[..., Campaign]) -> None:
    plan = make(compose("exp=aa", "bracket=duet"), "run-1")
    assert (plan.beside, plan.schedule.n_boots) == ((), 16)


REFUSED = {
    "looks": ({"looks": [8]}, "judged once, at its end"),
    "blocks of boots": ({"schedule": "ABBA BAAB"}, "written in pairs, AB or BA"),
    "more than may be": ({"max_boots": 4}, "8 boots, bracket.max_boots allows 4"),
}


@pytest.mark.parametrize(("fields", "words"), REFUSED.values(), ids=REFUSED)
def test_a_bracket_that_is_no_duet_is_refused_with_the_reason(
    exp8: Campaign, fields: dict[str, object], words: str
) -> None:
    exp8 = duet(exp8)
    exp8.bracket = replace(exp8.bracket, **fields)
    with pytest.raises(ConfigError, match=words):
        make(exp8, "run-1")


SHARES = {"none": (None, None), "more than there is": (0.6, 0.6), "one of two": (0.45, None)}


def on_a_device(exp8: Campaign, base: float | None, candidate: float | None) -> Campaign:
    """The duet on an engine with a GPU; what each arm may take of it."""
    exp8 = duet(exp8)
    exp8.engine.build = "cuda"
    for arm, share in (("base", base), ("candidate", candidate)):
        exp8.arms[arm].serve |= {} if share is None else {"gpu_memory_utilization": share}
    return exp8


@pytest.mark.parametrize("shares", SHARES.values(), ids=SHARES)
def test_two_engines_that_do_not_fit_on_one_device_are_refused_before_a_boot(
    exp8: Campaign, shares: tuple[float | None, float | None]
) -> None:
    with pytest.raises(ConfigError, match=r"engine.serve.gpu_memory_utilization to less than half for both"):
        make(on_a_device(exp8, *shares), "run-1")


def test_two_halves_fit_on_one_device(exp8: Campaign) -> None:
    assert make(on_a_device(exp8, 0.45, 0.5), "run-1").schedule.paired


def test_a_duet_needs_the_next_port_too(exp8: Campaign) -> None:
    exp8.host.port = 65535
    with pytest.raises(ConfigError, match="takes the next port too"):
        make(duet(exp8), "run-1")


# the records


def test_half_a_pair_in_the_journal_is_none(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "r")
    folder.keep(boot(1, "A", pair=1), boot(2, "B", pair=1))
    folder.keep(boot(3, "B", pair=2))
    assert [record.index for record in folder.records()] == [1, 2]
    folder.keep(boot(3, "B", pair=2), boot(4, "A", pair=2))
    assert [record.index for record in folder.records()] == [1, 2, 3, 4]


def test_base_beside_base_is_no_boot_of_the_bracket(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "r")
    folder.keep(boot(1, "A", pair=1), boot(2, "A", pair=1), prefix="aa-")
    assert (folder.records(), len(folder.records("aa-"))) == ((), 2)
    assert plain(folder.records("aa-")[0])["letter"] == "A"


def test_attempts_at_a_pair_are_counted_by_the_pair_and_apart_from_base_beside_base(
    exp8: Campaign, tmp_path: Path
) -> None:
    plan, folder = make(duet(exp8), "run-1"), RunFolder.create(tmp_path, "r")
    bench = Bench(plan, folder, {}, {}, lambda _: None)
    failed = [boot(n, x, pair=1, status="failed", reason="co-tenant") for n, x in ((1, "A"), (2, "B"))]
    folder.append(*({"event": "attempt", "boot": plain(record)} for record in failed))
    folder.append({"event": "attempt", "boot": plain(failed[0])})  # a kill cut off the other one
    assert attempts.earlier(bench, plan.data[0]) == [tuple(failed)]
    assert attempts.earlier(bench, plan.data[1]) == []
    assert attempts.earlier(bench, plan.beside[0]) == []
    folder.keep(*failed)
    assert attempts.earlier(bench, plan.data[0]) == []


def beside(*rates: float) -> list[BootRecord]:
    """Boots of base beside base, two a pair."""
    return [boot(n, "A", pair=(n + 1) // 2, metrics={"step_per_s": rate}) for n, rate in enumerate(rates, 1)]


def test_base_beside_base_tells_its_ratio_with_its_interval() -> None:
    told = comparison(beside(100.0, 101.0, 200.0, 199.0, 150.0, 151.0))
    assert told == {BESIDE: "second port against first, step/s +0.4 % [-1.6, +2.4] on 2 df, 3 pairs"}


def test_one_pair_of_base_beside_base_has_no_error_bar() -> None:
    assert comparison(beside(100.0, 101.0)) == {
        BESIDE: "second port against first, step/s +1.0 % [no error bar of 1 pair]"
    }


def test_no_speed_is_judged_where_base_beside_base_differs() -> None:
    told = comparison(beside(100.0, 90.0, 200.0, 180.5, 150.0, 134.7))
    assert told[BESIDE].endswith("they differ")
    rates = zip("ABBABAAB", (100.0, 110.0, 110.3, 100.1, 109.9, 100.0, 100.2, 110.1), strict=True)
    boots = tuple(
        boot(n, letter, pair=(n + 1) // 2, facts=told, metrics={"step_per_s": rate})
        for n, (letter, rate) in enumerate(rates, 1)
    )
    evidence = Evidence("exp8", boots, {"step_rate": step_rate(0.0)}, "ABBABAAB")
    result = StepRate().check(evidence)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "two engines beside each other are not alike here" in result.line
    alike = StepRate().check(replace(evidence, boots=tuple(replace(b, facts={}) for b in boots)))
    assert alike.verdict is Verdict.PASS
    assert UNLIKE not in comparison(beside(100.0, 100.0, 100.0, 100.0))


def test_a_pair_is_told_by_both_its_boots_and_never_by_a_bare_percentage() -> None:
    rates = {"A": {"step_per_s": 100.0}, "B": {"step_per_s": 104.0}}
    records = [boot(n, x, pair=1, metrics=rates[x], seconds={"total": 30.0}) for n, x in enumerate("BA", 1)]
    lines = format_data(records, lambda _: 8)
    assert lines[0] == "pair 1/4  01-BA  (60 s)"
    assert [line.split()[:3] for line in lines[1:]] == [["candidate", "104.0", "step/s"], ["base", "100.0", "step/s"]]
    assert "%" not in " ".join(lines)


def test_the_report_has_a_row_a_pair_and_none_for_boots_alone() -> None:
    rates = {"A": {"step_per_s": 100.0}, "B": {"step_per_s": 104.0}}
    boots = tuple(boot(n, x, pair=(n + 1) // 2, metrics=rates[x]) for n, x in enumerate("ABBA", 1))
    evidence = Evidence("exp8", boots, {}, "ABBA")
    table = report_tables.pairs(evidence)
    assert table is not None
    assert table.rows == (
        ("1", "01-A 02-B", "100.0", "104.0", "1.0400"),
        ("2", "03-B 04-A", "100.0", "104.0", "1.0400"),
    )
    assert report_tables.pairs(replace(evidence, boots=tuple(replace(b, pair=0) for b in boots))) is None


# base beside base on a machine that spoils it


def aa_machine(*tries: str) -> Callable[..., tuple[BootRecord, ...]]:
    """A stand-in for `attempts.run_datum`: what each pair in turn comes to; the rest is sound."""
    left = list(tries)

    def datum(_bench: Bench, pair: tuple[PlannedBoot, ...], _machine: object, keep: Keep) -> tuple[BootRecord, ...]:
        ended = left.pop(0) if left else "ok"
        facts = {HOST_UNFIT: "true"} if ended == "unfit" else {}
        status, reason = ("ok", "") if ended == "ok" else ("void", f"the machine was {ended}")
        rates = {"metrics": {"step_per_s": 100.0 + pair[0].index}}
        found = tuple(boot(b.index, "A", pair=b.pair, status=status, reason=reason, facts=facts, **rates) for b in pair)
        keep(found)  # as the real one does: as soon as it is known, and again after the wait for the memory
        return keep(found)

    return datum


@pytest.fixture
def aa_bench(exp8: Campaign, tmp_path: Path) -> Bench:
    return Bench(make(duet(exp8), "exp8-1"), RunFolder.create(tmp_path / "runs", "exp8-1"), {}, {}, lambda _: None)


SPOILED = {
    "once": (("busy",), {1: 1}, "2 pairs"),
    "each once": (("busy", "ok", "busy"), {1: 1, 3: 1}, "2 pairs"),
    "one of them for good": (("busy", "busy"), {1: 1}, "1 pair"),
    "both for good": (("busy",) * 4, {1: 1, 3: 1}, "gave no data"),
}


@pytest.mark.parametrize(("tries", "again", "told"), SPOILED.values(), ids=SPOILED)
def test_a_spoiled_pair_of_base_beside_base_is_run_again_and_without_data_no_speed_is_judged(
    aa_bench: Bench, monkeypatch: pytest.MonkeyPatch, tries: tuple[str, ...], again: dict[int, int], told: str
) -> None:
    monkeypatch.setattr(attempts, "run_datum", aa_machine(*tries))
    found = dict(beside_first(aa_bench, NO_WATCH).told)
    assert told in found[BESIDE]
    assert (UNLIKE in found) is (told == "gave no data")
    assert Counter(group[0].index for group in aa_bench.folder.voided("aa-")) == again
    assert aa_bench.folder.voided() == ()


def test_no_pair_is_started_after_one_of_base_beside_base_that_left_the_machine_unfit(
    aa_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "run_datum", aa_machine("unfit"))
    with pytest.raises(HostUnfitError, match="base beside base, boot aa-01-A: the machine was unfit"):
        beside_first(aa_bench, NO_WATCH)
    assert len(aa_bench.folder.records("aa-")) == 2
    resumed = beside_first(aa_bench, NO_WATCH)  # which vouches for the machine, and costs no re-run
    assert dict(resumed.told)[BESIDE].endswith("2 pairs")
    assert not spent(aa_bench.plan, boot(1, "A", pair=1), aa_bench.folder.voided("aa-"))


def test_a_speed_without_its_base_beside_base_is_no_verdict() -> None:
    told = comparison(beside())
    boots = tuple(
        boot(n, letter, pair=(n + 1) // 2, facts=told, metrics={"step_per_s": 100.0 + 10 * (letter == "B") + n / 10})
        for n, letter in enumerate("ABBABAAB", 1)
    )
    result = StepRate().check(Evidence("exp8", boots, {"step_rate": step_rate(0.0)}, "ABBABAAB"))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "is not known: base beside base gave no data" in result.line


# a pair that the machine spoiled


def a_pair_beside(index: int) -> tuple[BootRecord, BootRecord]:
    """The second boot of the pair found a co-tenant; the first had nothing to do with it."""
    one = boot(index, "A", pair=1 + index // 2, status="void", reason="pair has no data: its other boot", facts=NO_DATA)
    return one, boot(index + 1, "B", pair=1 + index // 2, status="void", reason="co-tenant: pid 7 holds 40 GiB")


NO_DATA = {BESIDE_ANOTHER: "02-B (candidate)"}


def test_a_pair_that_is_voided_is_told_by_the_boot_that_has_the_cause(aa_bench: Bench) -> None:
    said: list[str] = []
    bench, folder = replace(aa_bench, say=said.append), aa_bench.folder
    folder.keep(*a_pair_beside(1))
    void_the_tainted(bench, Progress.of(bench.plan, folder))
    assert said == ["void          01-A, 02-B: co-tenant: pid 7 holds 40 GiB; run again"]
    ((one, two),) = folder.voided()
    assert (one.reason, two.reason) == tuple(record.reason for record in a_pair_beside(1))
    folder.keep(*a_pair_beside(1))  # and again: the budget of its block is spent
    run = Progress.of(bench.plan, folder)
    void_the_tainted(bench, run)
    assert "boot 02-B: co-tenant: pid 7 holds 40 GiB" in run.outcome().results[0].line


def test_a_pair_after_which_the_machine_was_unfit_is_run_again_as_a_pair_when_it_is_resumed(
    aa_bench: Bench,
) -> None:
    folder, plan = aa_bench.folder, aa_bench.plan
    unfit = {"status": "void", "reason": "memory is not back", "facts": {HOST_UNFIT: "true"}}
    folder.keep(boot(1, "A", pair=1), boot(2, "B", pair=1))
    folder.keep(boot(3, "B", pair=2, **unfit), boot(4, "A", pair=2, **unfit))
    run = Progress.of(plan, folder)
    assert run.ended() == "the machine is not as it was"
    vouched_for(run)
    assert [record.index for record in run.records] == [record.index for record in folder.records()] == [1, 2]
    assert run.ended() == ""
    assert [[record.index for record in group] for group in folder.voided()] == [[3, 4]]
