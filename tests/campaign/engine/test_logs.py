"""What a log says."""

from pathlib import Path

import pytest

from campaign.engine import logs

ONE_LINE = "GPU KV cache size: 174,720 tokens, Maximum concurrency for 2,048 tokens per request: 85.31x"
HYBRID = "GPU KV cache size: 290,864 tokens\nMaximum concurrency for 32,768 tokens per request: 33.04x"
NOISE = [
    f"WARNING [envs.py] Unknown vLLM environment variable detected: VLLM_SVC{i}_SERVICE_PORT_HTTP" for i in range(40)
]


def test_the_kv_line_of_the_engine_is_read_with_its_commas() -> None:
    assert logs.kv(ONE_LINE) == logs.KvLog(174_720, 2_048, 85.31, 1, "")


def test_numbers_that_contradict_each_other_are_a_sentence() -> None:
    found = logs.kv(HYBRID)
    assert found is not None
    assert found.capacity_tokens == 290_864
    assert "1,082,655 in all" in found.contradiction


def test_of_several_workers_the_smallest_counts() -> None:
    found = logs.kv(
        ONE_LINE + "\nGPU KV cache size: 87,360 tokens, Maximum concurrency for 2,048 tokens per request: 42.66x"
    )
    assert found == logs.KvLog(87_360, 2_048, 42.66, 2, "")


def test_a_log_without_a_kv_line_gives_none() -> None:
    assert logs.kv("INFO nothing of that") is None


def test_every_unknown_variable_is_found_once() -> None:
    text = "\n".join([*NOISE, NOISE[0], "Unknown vLLM environment variable detected: VLLM_FLASHINFER_MOE_BACKEND"])
    assert len(logs.unknown_variables(text)) == 41


@pytest.mark.parametrize(
    ("line", "backend"),
    [("INFO [cuda.py] Using AttentionBackendEnum.FLASH_ATTN backend.", "FLASH_ATTN"), ("INFO Using CPU layout.", None)],
)
def test_the_attention_backend_is_read(line: str, backend: str | None) -> None:
    assert logs.attention_backend(line) == backend


def test_the_tail_leaves_blank_lines_out_and_survives_broken_bytes(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    log.write_bytes(b"one\n\n\xff\xfetwo\n   \nthree\n")
    assert logs.tail(log, 2) == ("\ufffd\ufffdtwo", "three")


def test_the_tail_of_a_huge_log_is_its_end(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    log.write_text("\n".join(f"line {i}" for i in range(200_000)))
    assert logs.tail(log)[-1] == "line 199999"
    assert len(logs.tail(log)) == 40


def test_a_log_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert (logs.read(tmp_path / "no"), logs.tail(tmp_path / "no")) == ("", ())


def test_decisions_of_the_engine_that_change_the_measurement_are_shown() -> None:
    text = (
        "INFO fine\n"
        "WARNING Async scheduling not supported with dflash-based speculative decoding and will be disabled.\n"
        "WARNING Model Runner V2 requires Triton; using the V1 model runner instead."
    )
    assert len(logs.worth_showing(text)) == 2


def test_the_tail_leaves_out_what_interpreters_say_of_leaks_as_they_end(tmp_path):
    log = tmp_path / "engine.log"
    noise = 'nanobind: leaked 3 functions!\n - leaked function "reset_type"\n - ... skipped remainder\n'
    log.write_text(
        f"EngineDeadError: EngineCore died\n{noise}  warnings.warn('resource_tracker: There appear to be %d '\n"
    )
    assert logs.tail(log) == ("EngineDeadError: EngineCore died",)
