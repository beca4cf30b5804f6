"""Whatever stands in a file, `inspect` reads it or says in one sentence what it is: never a fault of ours."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from campaign.errors import ConfigError
from campaign.inspection import document, look_into_all

HUGE = 10**400
ODD = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        5,
        HUGE,
        1e-320,
        1e308,
        "",
        "x",
        "\ud800",
        [],
        [1],
        [[]],
        [None],
        {},
        {"a": 1},
        {"kind": "exact"},
    ]
)
WHOLE: dict[str, dict[str, Any]] = {
    "record": {
        "schema": 1, "claim": {"name": "s", "metric": "step_per_s", "kind": "superiority", "gate_pct": 5},
        "letters": "ABBA", "readings": [100.0, 110.0, 109.0, 101.0], "judged": {"line": "x"},
        "history": {"sd_pct": 1.0, "df": 30}, "metrics": {"acceptance_length": [2.0] * 4}, "void": [],
        "sessions": [0] * 4,
    },
    "result": {"run_id": "x", "verdict": "PASS", "gates": [{"line": "PASS a", "details": ["b"]}], "boots": ["01-A"]},
    "benchmark": {"completed": 5, "num_prompts": 5, "output_throughput": 1.0},
    "stream": {
        "chunks": [[0, 1], [10, 2], [20, 3]], "sent_ms": -5, "usage": {"completion_tokens": 6}, "draft_tokens": 3,
        "asked_tokens": 6, "client_tokens": 5, "error": "", "text": "a", "id": "b", "finish_reason": "length",
    },
    "kept": {
        "prompt_id": "p", "text": "x", "token_ids": [1, 2], "finish_reason": "stop", "prompt_tokens": 5, "sent_ns": 0,
        "chunk_ns": [1, 2], "chunk_tokens": [1, 1], "completion_tokens": 2, "asked": "{}", "reasoning_tokens": 0,
    },
    "texts": {
        "prompt_id": "p", "prompt": "q", "text": "x", "token_ids": [1], "finish_reason": "stop", "prompt_tokens": 5,
        "check": {"kind": "numeric", "value": 5, "tolerance": 0.1}, "sampled": False, "prompt_hash": "",
        "max_tokens": 5,
    },
}  # fmt: skip


@pytest.mark.parametrize("kind", WHOLE)
def test_each_of_these_files_is_read_as_it_stands(kind: str, tmp_path: Path) -> None:
    (tmp_path / "file.json").write_text(json.dumps(WHOLE[kind]))
    assert look_into_all([tmp_path / "file.json"])[0].kind == kind.replace("kept", "stream")


@pytest.mark.parametrize("kind", WHOLE)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_file_with_anything_odd_in_it_is_read_or_refused(kind: str, data: st.DataObject, tmp_path: Path) -> None:
    found = dict(WHOLE[kind])
    for key in data.draw(st.lists(st.sampled_from(sorted(found)), min_size=1, max_size=2, unique=True)):
        within = found[key]
        if isinstance(within, dict) and within and data.draw(st.booleans()):
            found[key] = within | {data.draw(st.sampled_from(sorted(within))): data.draw(ODD)}
        elif isinstance(within, list) and within and data.draw(st.booleans()):
            found[key] = [data.draw(ODD), *within[1:]]
        else:
            found[key] = data.draw(ODD)
    file = tmp_path / "file.json"
    file.write_text(json.dumps(found))
    with suppress(ConfigError):
        document(look_into_all([file]))
        document(look_into_all([file, file]))
