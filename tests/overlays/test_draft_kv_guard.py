"""The drafter that is skipped for a whole batch: the hole in the stock engine, its guard, and the planted fault.

One boot in one process shows all of them on the toy pair (float32, CPU); a second one is scheduled asynchronously.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

from overlays.base import base_tree
from overlays.manifest import load, with_required
from overlays.stage import stage

ROOT = Path(__file__).parents[2]
OVERLAYS = ["engine_report", "draft_kv_guard", "starved_hits"]
TIMEOUT_S = 900


@pytest.fixture(scope="module")
def boot(engine_python, stage_cache, faulty, tmp_path_factory):
    """boot(mode): what draft_kv.py told of one engine; mode is sync or async."""

    def booted(mode):
        named = [*OVERLAYS, *(["async_dflash"] if mode == "async" else [])]
        made = stage(base_tree(engine_python), with_required(named, [faulty]), stage_cache)
        folder = tmp_path_factory.mktemp(mode)
        environment = {
            "PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(made.path), "PYTHONSAFEPATH": "1",
            "PYTHONDONTWRITEBYTECODE": "1", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive",
            "VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CACHE_ROOT": str(stage_cache.parent / "test-vllm"),
            "VLLM_GLM53_ASYNC_DFLASH": "1" if mode == "async" else "0",
        }  # fmt: skip
        script = Path(__file__).parent / "draft_kv.py"
        done = subprocess.run(
            [str(engine_python), str(script), str(ROOT / "testbed"), mode],
            capture_output=True, text=True, env=environment, cwd=folder, timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.splitlines()[-1])

    return booted


@pytest.fixture(scope="module")
def sync(boot):
    """One boot for every test that looks at the stock scheduler."""
    return boot("sync")


@pytest.fixture(scope="module")
def asynchronous(boot):
    """One boot with two batches in flight."""
    return boot("async")


@pytest.fixture(params=["sync", "asynchronous"])
def told(request):
    """Either boot."""
    return request.getfixturevalue(request.param)


def drafted(scenario):
    """Drafts, and accepted drafts for each position, of the questions that hit the prefix."""
    return scenario["drafts"], scenario["accepted"]


@pytest.mark.engine
def test_a_prompt_filled_beside_a_request_at_the_limit_drafts_badly_on_every_later_hit(told):
    alone, stock = told["alone"], told["stock"]
    assert stock["guard"]["drafter_calls"] == 0
    assert stock["guard"]["tokens_fitting"] >= 491  # the whole prompt went by without a drafter
    assert stock["hits"] == alone["hits"] >= 8 * 416
    assert stock["accepted"][0] / stock["drafts"] < 0.75 * alone["accepted"][0] / alone["drafts"]


@pytest.mark.engine
def test_the_guard_drafts_as_if_the_prompt_had_been_filled_alone(told):
    guarded = told["guarded"]
    assert drafted(guarded) == drafted(told["alone"])
    assert guarded["hits"] == told["alone"]["hits"]
    assert guarded["guard"]["drafter_calls"] == guarded["guard"]["batches"] >= 1


@pytest.mark.engine
def test_starved_hits_lose_the_acceptance_and_what_was_never_a_hit_does_not(told):
    starved = told["starved"]
    assert starved["starving"]["starved_requests"] == 8
    assert starved["starving"]["starved_tokens"] == starved["hits"]
    assert starved["accepted"][0] / starved["drafts"] < 0.75 * told["alone"]["accepted"][0] / told["alone"]["drafts"]
    assert drafted(told["alone again"]) == drafted(told["alone"])


@pytest.mark.engine
def test_texts_are_the_same_with_the_hole_with_the_guard_and_with_starved_hits(told):
    texts = [told[name]["again"] for name in ("alone", "stock", "guarded", "starved", "alone again")]
    assert texts == [texts[0]] * 5
    assert told["stock"]["first"] == told["guarded"]["first"]


@pytest.mark.engine
def test_a_guarded_step_writes_the_batchs_own_tokens_and_the_fitting_requests_queries_only(sync):
    assert sync["written"] == {"not its own": [], "missing": [], "slots": sync["written"]["slots"]}


@pytest.mark.engine
def test_the_second_boot_is_scheduled_asynchronously(asynchronous):
    assert asynchronous["async"] is True


@pytest.mark.engine
def test_probabilities_of_a_withheld_draft_say_that_it_is_token_0(sync):
    assert sync["withheld"] == {
        "drafts": [[5, 6], [0, 0]],
        "probabilities": [[[0.25] * 4] * 2, [[1.0, 0.0, 0.0, 0.0]] * 2],
        "not guarded": [[5, 6], [7, 8]],
    }


@pytest.mark.engine
def test_a_drafter_shorter_than_the_target_is_given_no_token_beyond_its_length(sync):
    """A long request is over for its whole life there; its context reaches where the drafter has no position."""
    assert sync["beyond"] == {"slots": [70, 71, -1, -1], "positions": [598, 599, 0, 0]}


def test_the_witness_asks_for_steps_that_were_decided_here():
    (knob,) = load("draft_kv_guard").knobs
    assert knob.default == "1"
    assert knob.witness["1"].behaved == {"draft_kv_guard.guarded_steps": {"min": 1.0}}
    assert knob.witness["0"].behaved == {"draft_kv_guard.guarded_steps": {"max": 0.0}}
