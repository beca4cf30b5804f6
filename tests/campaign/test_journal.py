"""The run folder survives kills: half files, torn lines, two runners at once."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from campaign import journal
from campaign.boot_records import plain, record
from campaign.errors import CampaignError, ConfigError, SkippedError
from campaign.evidence import Answer, BootRecord, DraftCounts, KvFacts, Status, WitnessRow
from campaign.journal import RunFolder, read_json, write_json, write_text
from tests.fakes.evidence import answer, boot

ROOT = Path(__file__).resolve().parents[2]
KOREAN = {"event": "note", "text": "엔진이 죽었습니다"}


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A run folder that is there."""
    return RunFolder.create(tmp_path, "exp8-20261130-120000-5f3c")


def names(path: Path) -> list[str]:
    """Everything in a folder, hidden files too."""
    return sorted(entry.name for entry in path.iterdir())


# files


def test_a_text_is_written_with_its_folders(tmp_path: Path) -> None:
    write_text(tmp_path / "boots" / "01-A" / "texts.jsonl", "안녕\n")
    assert (tmp_path / "boots" / "01-A" / "texts.jsonl").read_bytes() == "안녕\n".encode()


def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    write_text(tmp_path / "plan.json", "old")
    with pytest.raises(UnicodeEncodeError):
        write_text(tmp_path / "plan.json", "new \ud800")
    assert (names(tmp_path), (tmp_path / "plan.json").read_text()) == (["plan.json"], "old")


def test_a_disk_that_is_full_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    """I2: results are written aside and renamed."""
    code = (
        "import resource, signal, sys; from pathlib import Path; from campaign.journal import write_text\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))\n"
        "write_text(Path(sys.argv[1]), 'x' * 1_000_000)"
    )
    write_text(tmp_path / "result.json", "old")
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "result.json"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert "File too large" in done.stderr
    assert (names(tmp_path), (tmp_path / "result.json").read_text()) == (["result.json"], "old")


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    """A writer is killed again and again while it rewrites a large file; what is read is always whole."""
    file = tmp_path / "report.html"
    code = (
        "import sys, itertools; from pathlib import Path; from campaign.journal import write_text\n"
        "for i in itertools.count(): write_text(Path(sys.argv[1]), str(i % 10) * 400_000); print(flush=True)"
    )
    for _ in range(3):
        with subprocess.Popen([sys.executable, "-c", code, file], cwd=ROOT, stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            seen = [file.read_text() for _ in range(20)]
            writer.kill()
        seen.append(file.read_text())
        assert {(len(text), len(set(text))) for text in seen} == {(400_000, 1)}


def test_a_file_can_be_read_by_the_colleagues_that_the_umask_allows(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write_text(tmp_path / "report.html", "x")
    finally:
        os.umask(before)
    assert oct((tmp_path / "report.html").stat().st_mode & 0o777) == "0o644"


def test_korean_stays_readable_in_json(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"text": "안녕"})
    assert "안녕" in (tmp_path / "a.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")], ids=str)
def test_a_number_that_is_not_finite_never_becomes_json(tmp_path: Path, value: float) -> None:
    """G1, G2: no other program reads NaN in JSON alike."""
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "a.json", {"step_per_s": value})
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(None, "no such file"), (b"{broken", "is not JSON"), (b"\xff\xfe", "is not JSON"), (b"", "is not JSON")],
    ids=["missing", "broken", "not UTF-8", "empty"],
)
def test_a_file_of_ours_that_cannot_be_read_is_a_configuration_error(tmp_path: Path, content, sentence: str) -> None:
    file = tmp_path / "plan.json"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match=f"{sentence}.*|.*plan.json {sentence}"):
        read_json(file)


# the folder


def test_a_run_folder_is_made_exclusively(tmp_path: Path, folder: RunFolder) -> None:
    with pytest.raises(CampaignError, match="exists already; start again"):
        RunFolder.create(tmp_path, folder.path.name)


@pytest.mark.case("F6")
def test_of_two_processes_that_start_together_one_gets_the_folder(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from campaign.errors import CampaignError\n"
        "from campaign.journal import RunFolder\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "try: RunFolder.create(Path(sys.argv[1]), 'same'); print('mine')\n"
        "except CampaignError: print('taken')"
    )
    both = [
        subprocess.Popen(
            [sys.executable, "-c", code, tmp_path / "runs"],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(2)
    ]  # fmt: skip
    for process in both:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in both:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    assert sorted(process.communicate(timeout=30)[0] for process in both) == ["mine\n", "taken\n"]


def test_a_second_runner_of_a_living_run_is_skipped(folder: RunFolder) -> None:
    """I6: a live owner is never stolen from."""
    with folder.held(), pytest.raises(SkippedError, match="still being run by a living process"), folder.held():
        pass


def test_a_dead_runner_does_not_block(folder: RunFolder) -> None:
    """I6: the kernel holds the lock, so it goes with its owner."""
    code = (
        "import sys, time; from pathlib import Path; from campaign.journal import RunFolder\n"
        "with RunFolder(Path(sys.argv[1])).held(): print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, folder.path], cwd=ROOT, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        owner.stdout.readline()
        with pytest.raises(SkippedError), folder.held():
            pass
        owner.kill()
    with folder.held():
        assert folder.events() == []


# the journal


def test_events_come_back_in_order(folder: RunFolder) -> None:
    for i in range(3):
        folder.append({"event": "note", "i": i})
    assert [event["i"] for event in folder.events()] == [0, 1, 2]


def test_a_run_without_a_journal_has_no_events(folder: RunFolder) -> None:
    assert (folder.events(), folder.records()) == ([], ())


def test_an_event_is_on_disk_as_one_line(folder: RunFolder) -> None:
    folder.append({"text": "zwei\nZeilen\u2028und\r\nmehr"})
    assert folder.journal.read_bytes().count(b"\n") == 1
    assert folder.events() == [{"text": "zwei\nZeilen\u2028und\r\nmehr"}]


LINE = json.dumps(KOREAN, ensure_ascii=False).encode()


@pytest.mark.parametrize("kept", range(0, len(LINE) + 1, 1))
def test_a_line_that_a_kill_cut_at_any_byte_is_dropped(folder: RunFolder, kept: int) -> None:
    """Also inside a Korean syllable."""
    folder.append({"event": "note", "i": 0})
    with folder.journal.open("ab") as file:
        file.write(LINE[:kept])
    assert folder.events() == [{"event": "note", "i": 0}]


@pytest.mark.parametrize("torn", [LINE[:9], LINE[:31], b'{"event": "note"}', b"\0" * 4096], ids=repr)
def test_a_torn_line_is_cut_off_before_the_next_is_written(folder: RunFolder, torn: bytes) -> None:
    folder.append({"i": 0})
    with folder.journal.open("ab") as file:
        file.write(torn)
    folder.append({"i": 1})
    assert folder.events() == [{"i": 0}, {"i": 1}]


def test_a_journal_that_begins_with_a_torn_line_is_written_anew(folder: RunFolder) -> None:
    folder.journal.write_bytes(LINE[:20])
    folder.append({"i": 1})
    assert folder.events() == [{"i": 1}]


def test_an_answer_with_a_broken_character_is_kept(folder: RunFolder) -> None:
    """The gate must be able to refuse it: a broken engine never breaks the runner."""
    broken = boot(1, answers=(answer("p1", "깊은 \ud800\ufffd겼다", token_ids=(1,)),))
    folder.append({"event": "boot", "boot": plain(broken)})
    assert folder.records() == (broken,)


def test_a_number_that_is_not_finite_does_not_enter_the_journal(folder: RunFolder) -> None:
    folder.append({"i": 0})
    with pytest.raises(ValueError, match="JSON"):
        folder.append({"event": "boot", "boot": plain(boot(1, metrics={"step_per_s": float("nan")}))})
    assert folder.events() == [{"i": 0}]


def test_finished_boots_come_in_the_order_of_the_schedule(folder: RunFolder) -> None:
    for index in (2, 1, 3):
        folder.append({"event": "boot", "boot": plain(boot(index))})
    assert [r.index for r in folder.records()] == [1, 2, 3]


def test_a_boot_that_ran_twice_counts_by_its_last_line(folder: RunFolder) -> None:
    for reason in ("killed", ""):
        folder.append({"event": "boot", "boot": plain(boot(1, reason=reason))})
    assert [r.reason for r in folder.records()] == [""]


def test_other_events_are_no_boots(folder: RunFolder) -> None:
    folder.append(KOREAN)
    folder.append({"event": "boot", "boot": plain(boot(1))})
    assert len(folder.records()) == 1


# round trip

finite = st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(max_size=20)
counts = st.builds(DraftCounts, st.integers(0, 10**9), st.lists(st.integers(0, 10**9), max_size=8).map(tuple))
kv_facts = st.builds(KvFacts, *[st.integers(1, 10**6)] * 7)
rows = st.builds(
    WitnessRow, texts, st.sampled_from(["asked", "resolved", "behaved", "attested"]), texts, texts, texts,
    st.booleans(), texts,
)  # fmt: skip
answers = st.builds(
    Answer, texts, texts, texts, st.lists(st.integers(0, 10**6), max_size=5).map(tuple), texts, st.integers(0, 10**6),
    st.none() | st.booleans(), texts,
)  # fmt: skip
boots = st.builds(
    BootRecord,
    index=st.integers(1, 99),
    letter=st.sampled_from("AB"),
    arm=texts,
    status=st.sampled_from(get_args(Status)),
    reason=texts,
    log_tail=st.lists(texts, max_size=3).map(tuple),
    metrics=st.dictionaries(texts, finite, max_size=4),
    natural=st.none() | counts,
    by_prompt=st.dictionaries(texts, counts, max_size=3),
    window=st.none() | counts,
    answers=st.lists(answers, max_size=3).map(tuple),
    kv=st.none() | kv_facts,
    witness=st.lists(rows, max_size=3).map(tuple),
    seconds=st.dictionaries(texts, finite, max_size=3),
    facts=st.dictionaries(texts, texts, max_size=3),
)


@given(boots)
def test_a_boot_comes_back_from_disk_as_it_was(made: BootRecord) -> None:
    assert record(json.loads(journal.dumps(plain(made)))) == made


@pytest.mark.parametrize(
    "change", [lambda d: d.pop("kv"), lambda d: d.update(extra=1)], ids=["a key is missing", "a key is unknown"]
)
def test_a_record_of_another_schema_is_a_configuration_error(change: Any) -> None:
    data = plain(boot(1))
    change(data)
    with pytest.raises(ConfigError, match="another version"):
        record(data)
