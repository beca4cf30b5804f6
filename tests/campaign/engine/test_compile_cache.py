"""One compile cache for all boots that are asked for the same, and for no other."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from campaign.engine import spec
from campaign.engine.local import compile_cache
from campaign.engine.spec import EngineSpec
from tests.campaign.engine.conftest import campaign_of

Make = Callable[..., EngineSpec]
CACHES = ("VLLM_CACHE_ROOT", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")


def caches(folder: Path, *, stage: str = "s", **more: Any) -> tuple[str, ...]:
    """The caches of one boot; `more`: k, serve, variables, boot, port, target."""
    campaign = campaign_of(folder, more.get("port", 8000))
    campaign.model.num_speculative_tokens = more.get("k", 5)
    campaign.model.target = more.get("target", "/models/target")
    boot = more.get("boot", "01-A")
    made = spec.build(
        campaign,
        serve=more.get("serve", {}),
        variables=more.get("variables", {}),
        passed=[],
        stage_path=folder / stage,
        stage_modules=[],
        declared=frozenset(),
        boot_dir=folder / boot,
        nonce=f"n-{boot}",
        run_marker=f"run-{boot}",
    )
    return tuple(made.env[name] for name in CACHES)


DIFFERENT = {
    "another stage": {"stage": "t"},
    "another variable": {"variables": {"VLLM_X": "1"}},
    "another value of it": {"variables": {"VLLM_X": "0"}},
    "another serve argument": {"serve": {"max_num_seqs": 8}},
    "another draft length": {"k": 7},
    "another model": {"target": "/models/other"},
}


@pytest.mark.case("E8")
@pytest.mark.parametrize("change", DIFFERENT.values(), ids=DIFFERENT)
def test_what_is_asked_of_an_engine_decides_on_its_compile_caches(tmp_path: Path, change: dict[str, Any]) -> None:
    assert not set(caches(tmp_path)) & set(caches(tmp_path, **change))


@pytest.mark.case("E8")
def test_three_draft_lengths_have_three_caches_in_any_order(tmp_path: Path) -> None:
    forth = {k: caches(tmp_path, k=k) for k in (7, 9, 11)}
    back = {k: caches(tmp_path, k=k) for k in (11, 9, 7)}
    assert forth == back
    assert len({path for found in forth.values() for path in found}) == 9


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(boot=st.sampled_from(["02-A", "17-A"]), port=st.integers(1, 65535))
def test_all_boots_of_an_arm_share_their_caches_over_runs_and_ports(tmp_path: Path, boot: str, port: int) -> None:
    assert caches(tmp_path, boot=boot, port=port) == caches(tmp_path)


@pytest.mark.case("E9")
def test_a_cache_is_cold_until_an_earlier_boot_left_a_file_in_it(make: Make, tmp_path: Path) -> None:
    plain = make()
    mine = dataclasses.replace(plain, env=plain.env | {name: str(tmp_path / name) for name in CACHES})
    assert compile_cache(mine) == "cold"
    (tmp_path / "TRITON_CACHE_DIR" / "deep").mkdir(parents=True)
    assert compile_cache(mine) == "cold"
    (tmp_path / "TRITON_CACHE_DIR" / "deep" / "kernel.so").touch()
    assert compile_cache(mine) == "warm"
