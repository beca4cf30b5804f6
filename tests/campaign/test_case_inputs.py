"""Each case whose input is a file, through `inspect`: what it concludes of logs, counters, answers, streams."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from campaign.__main__ import main
from campaign.inspection import code, document, look_into_all

INPUTS = Path(__file__).resolve().parents[1] / "cases" / "inputs"

SCHEMA = Draft202012Validator(json.loads((INPUTS.parents[2] / "docs/schemas/inspect.json").read_text()))


def series(name: str, count: int) -> str:
    """NAME-1.txt to NAME-COUNT.txt."""
    return " ".join(f"{name}-{number}.txt" for number in range(1, count + 1))


ROWS = [  # case, files, exit code, what is told
    ("A3", "A3.log", 1, "engine-ready timeout"),
    ("A4", "A4.log", 1, "the engine's own limit fired (VLLM_ENGINE_READY_TIMEOUT_S=600), not ours"),
    ("A5", series("A5", 3), 1, "engine stalled: no counter moved in 2 windows while 3 requests waited"),
    ("A7", "A7.jsonl", 0, "2 of 4 requests are cold and left out"),
    ("A8", "A8.log", 1, "port in use"),
    ("A11", "A11.log", 1, "36.75 of the device's 121.63 GiB are free, the engine wants 103.38"),
    ("B1", "B1-old.txt", 0, "0.25  (vllm:gpu_cache_usage_perc"),
    ("B1", "B1-new.txt", 0, "1000  (vllm:prefix_cache_queries_total)"),
    ("B1", "B1-both.txt", 0, "1000  (vllm:prefix_cache_queries_total; left out vllm:gpu_prefix_cache_queries_total)"),
    ("B1", "B1-neither.txt", 5, "metric missing"),
    ("B2", "B2.txt", 0, "32.2 % of the tokens asked for, beside 180 preemptions"),
    ("B3", "B3.txt", 0, "pos1 83.3 %, pos2 0.0 %, pos3 4.2 %"),
    ("B5", "B5-before.txt B5-after.txt", 0, "unreliable: 210000 tokens asked for, 50000 of prompts were served"),
    ("B7", "B7.log B7.txt", 0, "tells only of engine 0, the counters of 0, 1: the log is partial"),
    ("B8", series("B8a", 5), 5, "the counters bounce (2 falls in 5 scrapes): several processes answer"),
    ("B8", series("B8b", 4), 5, "between scrape 2 and 3: counters of engine 0 fell"),
    ("B9", "B9-before.txt B9-after.txt", 3, "no draft was counted: speculation is not confirmed"),
    ("B10", "B10-before.txt B10-after.txt", 0, "pos1 72.7 %, pos2 42.7 %"),
    ("B11", "B11.log B11.txt", 3, "counter not wired: B11.log tells of 300 drafted tokens, the counters of 0 drafts"),
    ("B12", "B12.log", 0, "the log says 290,864 KV tokens, but 33.04 requests of 32,768 tokens (1,082,655 in all)"),
    ("B13", "B13.log", 0, "capacities of versions that profile differently are not comparable"),
    ("B13", "B13.log B13-older.log", 3, "174,720 tokens (vLLM 0.29.0), 205,312 tokens (vLLM 0.20.1): other versions"),
    ("B10", "B11.log B10-after.txt", 0, "two estimators of acceptance: 1 interval of B11.log, and the counters"),
    ("C1", "C1/engine.log", 5, "VLLM_ATTENTION_BACKEND=TRITON_ATTN was given and is unknown to the engine"),
    ("C2", "C2/engine.log", 5, "VLLM_FLASHINFER_MOE_BACKEND=latency was given"),
    ("C3", "C3-off.log", 0, "Async scheduling not supported with dflash-based speculative decoding"),
    ("C3", "C3-on.log", 0, "nothing of async scheduling, runner or prefix caching was decided otherwise"),
    ("C5", "C5.txt", 1, "drafter ineffective: 1.02 tokens a step of 3 drafted"),
    ("C6", series("C6", 3), 5, "acceptance collapses where prefix hits are many"),
    ("C8", "C8.txt", 1, "drafter ineffective: 1.00 tokens a step of 3 drafted"),
    ("C9", "C9/engine.log", 1, "not confirmed: --cpu-offload-gb 12 was asked for"),
    ("C10", "C10-unset.log", 0, "using the V1 model runner instead"),
    ("C10", "C10-one.log", 1, "VLLM_USE_V2_MODEL_RUNNER=1, but Model Runner V2 requires Triton"),
    ("C11", series("C11", 9), 3, "acceptance only falls, 3.07 to 2.80 tokens a step over 8 windows"),
    ("C12", "C12.log", 0, "Prefix caching is not supported for hybrid models and is disabled."),
    ("C13", "C13.log", 0, "each given the one before: 0.65, 0.55, 0.67, 0.75, 0.67, 0.49: no collapse"),
    ("C13", "C13-collapse.log", 0, "chain collapse after pos1"),
    ("D1", series("D1", 4), 5, "prefix hits differ between windows (0.1, 92.0, 93.0 %)"),
    ("D2", "D2.json", 0, "tok/s             100 at 3 tokens a step"),
    ("D2", "D2.json", 0, "chunk gap         30 ms"),
    ("D2", "D2.json", 0, "TPOT              10 ms"),
    ("D2", "D2.json", 0, "step/s            33.33"),
    ("D3", "D3.json", 0, "512 by the server's usage, which counts; the chunks hold 32"),
    ("D3", "D3-error.json", 1, "the stream carried an error: the engine is gone"),
    ("D4", "D4.json", 5, "7 chunks for 384 tokens"),
    ("D5", "D5.json", 0, "15 by the server's usage; tokenising the text again gives 1, which does not count"),
    ("D6", "D6.jsonl", 5, "early stop: p1 gave 310 tokens of 2048 asked with ignore_eos"),
    ("D7", "D7.json", 1, "1 of 100 requests completed (1 %): no rate of lost answers"),
    ("D8", "D8.jsonl", 0, "4 of 9 requests are cold and left out"),
    ("D9", "D9.jsonl", 0, "4 of 10 requests are cold and left out"),
    ("D10", "D10.json", 3, "the bracket does not close"),
    ("D11", "D11-1.jsonl D11-2.jsonl", 3, "no speed change is shown: step/s 56.19 and 56.66; tok/s differ by the acc"),
    ("D12", "D12-before.txt D12-after.txt", 4, "2 requests were running before the window: a run measures it again"),
    ("D14", "D14.jsonl", 3, "drift within the run: 143.8 chunk/s in its first third, 126.9 in its last"),
    ("E8", "E8.log", 1, "stale compile cache"),
    ("H1", "H1-server.jsonl", 1, "2 broken characters, the first U+FFFD"),
    ("H1", "H1-whole.jsonl", 0, "0/1 corrupt"),
    ("H2", "H2.jsonl", 1, "1 broken character, the first U+FFFD"),
    ("H3", "H3.jsonl", 1, "<0xEA><0xB9><0xB0> (meant '깰')"),
    ("H4", "H4-bad.jsonl", 1, "2/2 corrupt"),
    ("H4", "H4-good.jsonl", 0, "0/2 corrupt"),
    ("H5", "H5-nfd.jsonl", 0, "its Hangul is decomposed (NFD): compared in NFC"),
    ("H6", "H6.jsonl", 1, "suspected NaN: 100 times '!'"),
    ("H7", "H7.jsonl H7.txt", 1, "one fault, in the verification of drafts; tell which by three more boots: eager"),
    ("H8", "H8.jsonl", 3, "budget: nothing to see at the token limit"),
    ("H9", "H10-base1.jsonl H10-base2-noisy.jsonl H10-cand.jsonl", 3, "base differs from itself on 20/20 prompts"),
    ("H10", "H10-base1.jsonl H10-base2.jsonl H10-cand.jsonl", 1, "arms differ on 20/20 prompts"),
    ("H11", "H11.jsonl", 3, "harness suspect: 0/50"),
    ("H12", "H12.jsonl", 1, "1/2 correct"),
    ("H14", "H14-base.jsonl H14-cand.jsonl", 5, "has 38 tokens in boot 01-A and 51 in boot 02-B"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("files", "code", "words"),
    [
        pytest.param(files, code, words, marks=pytest.mark.case(case), id=f"{case}-{at}")
        for at, (case, files, code, words) in enumerate(ROWS)
    ],
)
def test_inspect_concludes_of_a_cases_input_what_is_right(
    files: str, code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", *(str(INPUTS / name) for name in files.split())]) == code
    told = capsys.readouterr()
    assert words in told.out, told.err


@pytest.mark.parametrize(
    "files", ["D6.jsonl", "D12-before.txt D12-after.txt", "D4.json", "D10.json", "D3-error.json", "C5.txt"]
)
def test_no_rate_is_told_of_what_was_not_measured(files: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["inspect", *(str(INPUTS / name) for name in files.split())])
    out = capsys.readouterr().out
    found = look_into_all([INPUTS / name for name in files.split()])
    told = [one["numbers"] for one in json.loads(document(found))["findings"]]
    assert files == "D10.json" or not any(told)
    assert not [line for line in out.splitlines() if line.lstrip().startswith(("step/s ", "tok/s ", "TPOT"))]


def test_what_is_found_is_one_document_of_the_written_schema() -> None:
    for files in {files for _, files, _, _ in ROWS}:
        found = look_into_all([INPUTS / name for name in files.split()])
        told = json.loads(document(found))
        SCHEMA.validate(told)
        assert told["exit_code"] == max(one.code for one in found if one.code == code(found))
        assert {name for one in told["findings"] for name in one["files"]} == {
            Path(name).name for name in files.split()
        }


def test_every_input_is_looked_into_by_a_row() -> None:
    looked = {name for _, files, _, _ in ROWS for name in files.split()}
    beside = {"C1/env.json", "C2/env.json", "C9/argv.json", "H5-nfc.jsonl"}
    there = {str(path.relative_to(INPUTS)) for path in INPUTS.rglob("*") if path.is_file()}
    assert there == looked | beside
