"""Run inside a staged engine: the same two prompts with every state of prep_fused, in one V2 runner of six KV groups.

argv: the testbed's folder, and sync or async. The last line of the output is the answer.
"""

import json
import sys
from pathlib import Path

K, LONG, SHORT, TOKENS = 5, 96, 24, 14
SCENARIOS = {  # word of the knob, self-check interval, what is planted
    "stock": ("0", 64, None),
    "shadow": ("shadow", 64, None),
    "armed": ("1", 4, None),
    "drift": ("1", 4, "drift"),
    "launch": ("1", 64, "launch"),
    "warm-up": ("1", 64, "warm-up"),
    "plan": ("1", 64, "plan"),
    "armed again": ("1", 4, None),
}


def main():
    """Every scenario on one engine, each with a state of its own."""
    testbed, asynchronous = Path(sys.argv[1]), sys.argv[2] == "async"
    engine = Engine(testbed, asynchronous)
    config = engine.llm.llm_engine.vllm_config
    answer = {"async": config.scheduler_config.async_scheduling, "batches": config.max_concurrent_batches}
    answer["mounted"] = engine.mounted()
    answer |= {name: engine.asked(*scenario) for name, scenario in SCENARIOS.items()}
    sys.stdout.write("\n" + json.dumps(answer) + "\n")


class Engine:
    """The toy pair in this process."""

    def __init__(self, testbed, asynchronous):
        from vllm import LLM

        self.llm = LLM(
            model=str(testbed / "weights" / "target"), dtype="float32", max_model_len=512, max_num_seqs=4,
            max_num_batched_tokens=128, enforce_eager=True, enable_prefix_caching=False,
            kv_cache_memory_bytes=64 * 2**20, async_scheduling=asynchronous,
            speculative_config={
                "method": "dflash", "model": str(testbed / "weights" / "draft_mixed"), "num_speculative_tokens": K,
            },
        )  # fmt: skip
        lines = (testbed / "prompts" / "decode.jsonl").read_text(encoding="utf-8").splitlines()
        text = json.loads(lines[0])["prompt"] + " " + json.loads(lines[1])["prompt"]
        tokens = self.llm.get_tokenizer().encode(text * 4)
        self.prompts = [tokens[:LONG], tokens[7 : 7 + SHORT]]  # the second one is shorter (trap a)
        self.runner = self.llm.llm_engine.model_executor.driver_worker.worker.model_runner

    def mounted(self):
        """What the report shows before the first step, and what the plugin made of this process."""
        from campaign_engine_report import state

        shown = dict(state.published()["prep_fused"])
        self.ask()
        return shown | {"runner": type(self.runner).__mro__[-2].__name__, "groups": len(self.runner.attn_groups)}

    def ask(self):
        """Greedy tokens, one prompt after the other, then both at once."""
        from vllm import SamplingParams

        params = SamplingParams(temperature=0.0, max_tokens=TOKENS, ignore_eos=True)
        turns = [[self.prompts[0]], [self.prompts[1]], self.prompts]
        return [
            list(output.outputs[0].token_ids)
            for turn in turns
            for output in self.llm.generate([{"prompt_token_ids": p} for p in turn], params, use_tqdm=False)
        ]

    def asked(self, word, every, planted):
        """The prompts with a fresh state, and what it came to."""
        from campaign_prep_fused import mounting
        from campaign_prep_fused.asked import Asked
        from campaign_prep_fused.fusion import Fusion
        from campaign_prep_fused.prep_fused.knob import parse

        fusion = Fusion(self.runner, Asked(parse(word).mode, every), getattr(self.runner, mounting.MARK).stock)
        setattr(self.runner, mounting.MARK, fusion)
        undo = PLANTS[planted](self.runner, fusion) if planted else lambda: None
        steps = _counted(fusion)
        tokens = self.ask()
        undo()
        return {"tokens": tokens, **fusion.shown(), "counters": fusion.counters.shown(), "per_step": sorted(steps)}


def _counted(fusion):
    """Launches, copies to the device and pool copies of each decode step's preparation: those that were seen."""
    import vllm.v1.worker.gpu.model_runner as module
    from campaign_engine_report import state
    from vllm.v1.worker.gpu.buffer_utils import UvaBufferPool

    copies, found = [0, 0], set()
    inputs, attn = fusion.prepare_inputs, fusion.prepare_attn

    def now():
        return state.counted()["cpu_v2_interpreter.launches"], *copies

    def prepare_inputs(scheduled, requests, descriptor):
        before = now()
        undo = [_counting(module, "async_copy_to_gpu", copies, 0), _counting(UvaBufferPool, "copy_to_uva", copies, 1)]
        batch = inputs(scheduled, requests, descriptor)
        fusion.prepare_attn = lambda given: prepare_attn(given, before, undo, requests.has_prefill)
        return batch

    def prepare_attn(batch, before, undo, has_prefill):
        answer = attn(batch)
        for done in undo:
            done()
        if not has_prefill:
            found.add(tuple(b - a for a, b in zip(before, now(), strict=True)))
        return answer

    fusion.prepare_inputs = prepare_inputs
    return found


def _counting(owner, name, counts, place):
    """Calls of it are counted until what is returned is called."""
    original = getattr(owner, name)

    def counted(*given, **more):
        counts[place] += 1
        return original(*given, **more)

    return _replaced(owner, name, counted)


def _drift(_runner, fusion):
    """From the second check on, what goes into the copies is wrong in one place."""
    from campaign_prep_fused.prep_fused.plan import Plan

    prepare = Plan.prepare

    def wrong(self, *given):
        found = prepare(self, *given)
        if self is fusion.station.aside and fusion.counters["checks"]:
            self.inputs.positions[0] += 1
        return found

    return _replaced(Plan, "prepare", wrong)


def _launch(_runner, fusion):
    """The fifth step's launch raises."""
    from campaign_prep_fused.prep_fused.plan import Plan

    prepare = Plan.prepare

    def broken(self, *given):
        if fusion.counters["fused_steps"] == 4:
            raise RuntimeError("planted: the launch failed")
        return prepare(self, *given)

    return _replaced(Plan, "prepare", broken)


def _warm_up(_runner, _fusion):
    from campaign_prep_fused.prep_fused.plan import Plan

    def broken(*_given):
        raise RuntimeError("planted: it does not compile")

    return _replaced(Plan, "prepare", broken)


def _plan(runner, _fusion):
    """A ring-buffer group, as far as the plan can see."""
    return _replaced(runner.block_tables, "_slot_mapping_enabled", [False, *[True] * 5])


PLANTS = {"drift": _drift, "launch": _launch, "warm-up": _warm_up, "plan": _plan}


def _replaced(owner, name, value):
    """Put in place until what is returned is called."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    return lambda: setattr(owner, name, before)


if __name__ == "__main__":
    main()
