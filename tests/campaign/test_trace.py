"""Twin of campaign.trace, on a recorded trace (CPU) and on one made by hand (GPU-like; no GPU was there)."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from campaign.trace import Phase, TraceError, of_folder, profile, read

HERE = Path(__file__).parent / "traces"
RECORDED, BY_HAND = HERE / "recorded-0.29.0-cpu.json", HERE / "made-by-hand-gpu.json"
STEP, VERSION = "execute_context_0(0)_generation_1(6)", "0.29.0"


def event(name: str, start: float, length: float, cat: str = "user_annotation") -> dict[str, object]:
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": start, "dur": length}


def test_a_recorded_step_is_split_and_what_is_not_named_is_other() -> None:
    """Figures of the whole trace as its own ranges give them, worked out here without the code."""
    events = read(RECORDED)
    found = profile(events, VERSION)
    starts = sorted(e["ts"] for e in events if e["name"] == STEP)
    inside = [e for e in events if starts[0] <= e["ts"] < starts[-1]]
    whole = starts[-1] - starts[0]

    def share(*ends: str) -> float:
        return 100 * sum(e["dur"] for e in inside if e["name"].removeprefix("gpu_model_runner: ") in ends) / whole

    assert found.steps == len(starts) - 1 == 12
    assert found.phases["prepare"].share_pct == pytest.approx(share("preprocess"))
    assert found.phases["submit"].share_pct == pytest.approx(share("forward", "postprocess", "sample", "draft"))
    assert found.phases["output"].share_pct == pytest.approx(share("bookkeep", "eplb", "ModelRunnerOutput"))
    assert found.phases["other"].share_pct == pytest.approx(21.0, abs=0.1)
    assert (found.phases["wait"].share_pct, found.phases["schedule"].share_pct) == (0, 0)


def test_on_a_cpu_no_device_share_is_told_and_why() -> None:
    found = profile(read(RECORDED), VERSION)
    assert found.idle_pct == {}
    assert found.notes[0].startswith("CPU: host only, no device idle share")


def test_on_a_device_waiting_is_taken_out_of_what_it_lies_in_and_idle_is_what_no_stream_covers() -> None:
    found = profile(read(BY_HAND), VERSION)
    shares = {name: round(time.share_pct, 6) for name, time in found.phases.items()}
    assert shares == {"schedule": 10, "prepare": 20, "submit": 25, "wait": 20, "output": 10, "other": 15}
    assert found.idle_pct == {"device 0": pytest.approx(100 - 45)}  # 220..620 and 650..700 of 1000
    assert found.notes == ()


def test_a_device_whose_work_was_not_seen_is_not_called_idle() -> None:
    events = [e for e in read(BY_HAND) if e["cat"] not in ("kernel", "gpu_memcpy")]
    found = profile(events, VERSION)
    assert found.idle_pct == {}
    assert "saw calls to a device and none of its work" in found.notes[0]


@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 3000), st.integers(0, 9)), max_size=30))
def test_the_phases_of_any_trace_make_up_the_whole(spans: list[tuple[int, int, int]]) -> None:
    names = [
        "preprocess",
        "forward",
        "sample",
        "draft",
        "bookkeep",
        "eplb",
        "ModelRunnerOutput",
        "nobody knows",
        "x",
        "y",
    ]
    inner = [event(f"gpu_model_runner: {names[n]}", start, length) for start, length, n in spans]
    found = profile([event(STEP, 1000.0 * n, 900.0) for n in range(5)] + inner, VERSION)
    assert sum(time.share_pct for time in found.phases.values()) == pytest.approx(100)
    assert all(-1e-9 <= found.phases[phase.value].share_pct <= 100 + 1e-9 for phase in Phase)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "no trace of torch's profiler"),
        (b"[]", "no trace of torch's profiler"),
        (b'{"traceEvents": 3}', "no trace of torch's profiler"),
        (b'{"traceEvents": [1, {"ph": "X"}, {"ph": "X", "name": "execute_", "ts": "1", "dur": 1}]}', "names 0 steps"),
        (json.dumps({"traceEvents": [event(STEP, n, 1) for n in range(3)]}).encode(), "names 3 steps"),
    ],
)
def test_a_file_that_shows_nothing_is_told(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "rank-0.json").write_bytes(content)
    with pytest.raises(TraceError, match=why):
        of_folder(tmp_path, VERSION)


def test_of_several_ranks_the_first_one_is_read_gzipped_or_not(tmp_path: Path) -> None:
    (tmp_path / "dp0_rank10.pt.trace.json").write_text("{}")
    (tmp_path / "dp0_rank0.1.pt.trace.json.gz").write_bytes(gzip.compress(BY_HAND.read_bytes()))
    path, found = of_folder(tmp_path, VERSION)
    assert (path.name, found.steps) == ("dp0_rank0.1.pt.trace.json.gz", 4)


def test_an_engine_version_without_a_table_and_an_empty_folder_are_told(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"no names of ranges for vLLM 0\.31\.0"):
        profile(read(BY_HAND), "0.31.0")
    with pytest.raises(TraceError, match="left no trace"):
        of_folder(tmp_path, VERSION)


GOOD = [event(STEP, 100.0 * n, 50.0) for n in range(5)]
KERNEL = event("gemm", 110.0, 5.0, "kernel")


@pytest.mark.parametrize(
    "more",
    [{"args": None}, {"args": [1]}, {"ts": 10**400}, {"ts": float("nan")}, {"dur": -5.0}, {"cat": None}, {"cat": [1]}],
    ids=["no arguments", "a list", "a huge time", "no time", "a negative time", "no category", "a list of them"],
)
def test_an_event_in_another_form_never_ends_in_our_fault(tmp_path: Path, more: dict[str, object]) -> None:
    (tmp_path / "rank0.json").write_text(json.dumps({"traceEvents": [*GOOD, KERNEL | more]}))
    try:
        _, found = of_folder(tmp_path, VERSION)
    except TraceError:
        return
    assert found.steps == 4


def test_steps_that_all_start_at_once_are_no_steps() -> None:
    with pytest.raises(TraceError, match="its clock does not go on"):
        profile([event(STEP, 100.0, 5.0) for _ in range(6)] + [KERNEL], VERSION)


def test_a_packed_trace_that_is_damaged_is_told(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(json.dumps({"traceEvents": GOOD}).encode()))
    for place in range(12, len(packed) - 8):
        packed[place] ^= 0xFF
    (tmp_path / "rank0.json.gz").write_bytes(packed)
    with pytest.raises(TraceError, match="is no trace"):
        of_folder(tmp_path, VERSION)
