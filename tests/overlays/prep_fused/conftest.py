"""The plugin as it is staged, on a runner made of the engine's own parts: in the engine's environment, interpreted."""

import importlib
import importlib.util
import os
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
HAS_TORCH = importlib.util.find_spec("torch") is not None
PLUGINS = ("engine_report", "prep_fused")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Nothing where there is no torch (the runner's environment), or where kernels are compiled."""
    interpreted = os.environ.get("TRITON_INTERPRET") == "1"
    return True if collection_path.name.startswith("test_") and not (HAS_TORCH and interpreted) else None


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    """package("fusion"): a module of the plugin, from its files as they are staged."""
    from overlays import manifest, payload

    stage = tmp_path_factory.mktemp("stage")
    for plugin in (manifest.load(name).plugin for name in PLUGINS):
        assert plugin is not None
        for name, content in payload.files(plugin):
            (stage / name).parent.mkdir(parents=True, exist_ok=True)
            (stage / name).write_bytes(content)
    sys.path.insert(0, str(stage))
    return lambda name: importlib.import_module(f"campaign_prep_fused.{name}")


@dataclass
class Metadata:
    """What a builder makes of a batch: one tensor of its own, one of the engine's, and host words."""

    starts: Any
    seq_lens: Any
    longest: int
    scheduler_metadata: object = field(default_factory=object)


class DefaultModelState:
    """Builds as the engine's does, by its name; a test plants what its builders do."""

    num_new_sampled_tokens_per_step = 1

    def __init__(self) -> None:
        self.built = 0
        self.plant: Callable[[int, Metadata], None] = lambda _number, _metadata: None

    def prepare_attn(
        self, batch: Any, _mode: Any, tables: Any, slots: Any, *_rest: Any, **_more: Any
    ) -> dict[str, Any]:
        """One object for each of two layers."""
        self.built += 1
        found = Metadata(
            batch.query_start_loc.clone() + slots[0, 0], batch.seq_lens, int(batch.query_start_loc_np.max())
        )
        self.plant(self.built, found)
        return {"model.layers.0": found, "model.layers.1": tables[0].clone()}


class Bench:
    """A world, a Fusion over it, and the engine's own answer to the same step."""

    def __init__(self, package: Callable[[str], Any], world: Any, mode: str, every: int) -> None:
        from kernels.prep_fused.proof import engine

        self.world, self.fusion_module = world, package("fusion")
        runner = importlib.import_module("vllm.v1.worker.gpu.model_runner")
        self.runner = world.runner
        self.runner.decode_query_len = world.max_query
        self.runner.model_state = DefaultModelState()
        self.runner.model_state.num_new_sampled_tokens_per_step = world.shape.new_sampled
        self.runner.vllm_config = SimpleNamespace(max_concurrent_batches=2, parallel_config=SimpleNamespace(rank=3))
        names = [[f"model.layers.{group}"] for group in range(len(world.shape.groups))]
        self.runner.kv_cache_config = SimpleNamespace(
            kv_cache_groups=[SimpleNamespace(layer_names=layers) for layers in names]
        )
        self.runner.speculator = SimpleNamespace(draft_attn_layer_names={names[-1][0]} if len(names) > 1 else set())
        self.runner.attn_groups = []
        gpu = runner.GPUModelRunner
        self.stock = self.fusion_module.Stock(
            gpu.prepare_inputs, gpu.prepare_attn, engine._module("input_batch").InputBatch
        )
        asked = package("asked").Asked(package("prep_fused.knob").parse(mode).mode, every)
        self.fusion = self.fusion_module.Fusion(self.runner, asked, self.stock)
        self.compared = package("compared")

    def step(self) -> list[str]:
        """One random step through the plugin, then the engine's own over it: where they differ."""
        from kernels.prep_fused.shadow import Copies

        world = self.world
        world.garbage()
        step = world.step()
        given = step.scheduler_output, step.batch, step.descriptor
        batch = self.fusion.prepare_inputs(*given)
        tables, slots = self.fusion.prepare_attn(batch)
        after = Copies(world.buffers, world.tables)
        own = self.stock.prepare_inputs(self.runner, *given)
        own_tables, own_slots = self.stock.prepare_attn(self.runner, own)
        return [
            *after.differences(),
            *self.compared.unlike_fields(vars(batch), own),
            *filter(None, (self.compared.difference(tables, own_tables), self.compared.difference(slots, own_slots))),
        ]

    def steps(self, count: int) -> list[str]:
        """So many of them."""
        return [told for _ in range(count) for told in self.step()]

    def count(self, name: str) -> float:
        """A counter as the report shows it."""
        return self.fusion.counters.shown().get(name, 0.0)


Benches = Callable[..., Bench]


@pytest.fixture
def bench(package: Callable[[str], Any]) -> Iterator[Benches]:
    """bench("shadow", world=2, every=64): a runner with the plugin in that state."""
    import torch

    from kernels.prep_fused.proof import engine
    from kernels.prep_fused.proof.world import SHAPES, World

    engine.ready(torch.device("cpu"))
    before = os.environ.get("VLLM_MOE_SKIP_PADDING")

    def made(mode: str, world: int = 0, every: int = 64, seed: int = 7) -> Bench:
        return Bench(package, World(SHAPES[world], torch.device("cpu"), random.Random(seed)), mode, every)

    yield made
    if before is None:
        os.environ.pop("VLLM_MOE_SKIP_PADDING", None)
