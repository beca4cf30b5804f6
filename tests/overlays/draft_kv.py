"""Run inside a staged engine: a shared prefix filled alone or beside a request at the limit, then asked about again.

argv: the testbed's folder, and sync or async. The last line of the output is the answer.
"""

import json
import sys
from pathlib import Path

LIMIT, K, BLOCK = 1024, 5, 32
NEAR = LIMIT - K  # tokens of a prompt whose first step leaves no room for K + 1 queries
DRAFTS = "vllm:spec_decode_num_drafts"
ACCEPTED = "vllm:spec_decode_num_accepted_tokens_per_pos"
HITS = "vllm:prefix_cache_hits"


def main():
    """Every scenario on one engine, from an empty prefix cache each."""
    testbed, asynchronous = Path(sys.argv[1]), sys.argv[2] == "async"
    engine = Engine(testbed, asynchronous)
    answer = {"async": engine.llm.llm_engine.vllm_config.scheduler_config.async_scheduling}
    answer["alone"] = engine.asked_again()
    for name, guards in (("stock", False), ("guarded", True)):
        answer[name] = engine.asked_again(beside=True, guards=guards)
    answer["starved"] = engine.asked_again(starves=True)
    answer["alone again"] = engine.asked_again()
    if not asynchronous:
        answer |= {"written": engine.written(), "withheld": withheld(), "beyond": beyond()}
    sys.stdout.write("\n" + json.dumps(answer) + "\n")


class Engine:
    """The toy pair in this process, with its counters."""

    def __init__(self, testbed, asynchronous):
        from vllm import LLM

        self.llm = LLM(
            model=str(testbed / "weights" / "target"), dtype="float32", max_model_len=LIMIT, max_num_seqs=4,
            max_num_batched_tokens=2 * LIMIT, block_size=BLOCK, enforce_eager=True, enable_prefix_caching=True,
            kv_cache_memory_bytes=64 * 2**20, disable_log_stats=False, async_scheduling=asynchronous,
            speculative_config={
                "method": "dflash", "model": str(testbed / "weights" / "draft"), "num_speculative_tokens": K,
            },
        )  # fmt: skip
        lines = (testbed / "prompts" / "shared_prefix.jsonl").read_text(encoding="utf-8").splitlines()
        prompts = [json.loads(line) for line in lines]
        template = self.llm.get_tokenizer().apply_chat_template
        self.prompts = [
            list(template(p["messages"], add_generation_prompt=True, return_dict=False))
            for p in prompts
            if "depot" in p["id"]
        ]
        self.near = (self.llm.get_tokenizer().encode("A line that was read out twice. ") * LIMIT)[:NEAR]

    def asked_again(self, beside=False, guards=True, starves=False):
        """The first prompt fills the cache, maybe beside a request at the limit; then each, alone, hits it."""
        from vllm.v1.spec_decode import draft_kv_guard
        from vllm.v1.worker import starved_hits

        assert self.llm.reset_prefix_cache()
        draft_kv_guard.GUARDS, starved_hits.ON = guards, starves
        told = dict(draft_kv_guard.counts), dict(starved_hits.counts)
        first = self.ask([self.near, self.prompts[0]] if beside else [self.prompts[0]])
        before = self.counters()
        again = [text for prompt in self.prompts for text in self.ask([prompt])]
        drafts, hits, *accepted = (b - a for a, b in zip(before, self.counters(), strict=True))
        starved_hits.ON = False
        return {
            "first": first, "again": again, "drafts": drafts, "hits": hits, "accepted": accepted,
            "guard": grown(told[0], draft_kv_guard.counts), "starving": grown(told[1], starved_hits.counts),
        }  # fmt: skip

    def ask(self, prompts):
        """Greedy texts of prompts that are in the engine together, from the same step on."""
        from vllm import SamplingParams

        params = SamplingParams(temperature=0.0, max_tokens=64)
        asked = [{"prompt_token_ids": prompt} for prompt in prompts]
        return [output.outputs[0].text for output in self.llm.generate(asked, params, use_tqdm=False)]

    def counters(self):
        """Drafts, tokens that were hits, accepted drafts for each position; since the start."""
        metrics = {metric.name: metric for metric in self.llm.get_metrics()}
        return int(metrics[DRAFTS].value), int(metrics[HITS].value), *map(int, metrics[ACCEPTED].values[:K])

    def written(self):
        """Slots of the drafter's caches that a guarded step wrote, and those that it might have, of both requests."""
        import torch
        from vllm import SamplingParams
        from vllm.v1.spec_decode import draft_kv_guard

        assert self.llm.reset_prefix_cache()
        draft_kv_guard.GUARDS = True
        engine = self.llm.llm_engine
        runner = engine.model_executor.driver_worker.worker.model_runner
        caches = [layer.kv_cache for layer in runner.drafter.model.model._attn_layers]
        for cache in caches:
            cache.fill_(7.0)
        lengths = {"near": NEAR, "prefix": len(self.prompts[0])}
        for name, prompt in (("near", self.near), ("prefix", self.prompts[0])):
            engine.add_request(name, {"prompt_token_ids": prompt}, SamplingParams(temperature=0.0, max_tokens=4))
        engine.step()
        may = {slot for name, n in lengths.items() for slot in _slots(runner, name, range(n))}
        may |= set(_slots(runner, "prefix", range(lengths["prefix"], lengths["prefix"] + K + 1)))
        wrote = torch.zeros(len(caches[0]) * BLOCK, dtype=torch.bool)
        for cache in caches:
            slots = _values(cache)
            wrote |= ((slots != 7.0) & (slots != 0.0)).any(dim=-1)  # a fresh block is zeroed first
        while engine.has_unfinished_requests():
            engine.step()
        found = set(wrote.nonzero().flatten().tolist())
        return {"not its own": sorted(found - may), "missing": sorted(may - found), "slots": len(may)}


class Drafter:
    """As much of a drafter as the guard looks at."""

    def __init__(self, over, **fields):
        import torch
        from vllm.v1.spec_decode import draft_kv_guard

        vars(self).update(fields)
        setattr(self, draft_kv_guard.MARK, draft_kv_guard.Shield(600, torch.tensor(over)))


def withheld():
    """What becomes of two requests' drafts and their probabilities, the second one over; and with nothing guarded."""
    import torch
    from vllm.v1.spec_decode import draft_kv_guard

    drafter = Drafter([False, True], _last_draft_probs=torch.full((2, 2, 4), 0.25))
    drafts = torch.tensor([[5, 6], [7, 8]])
    found = draft_kv_guard.withhold(drafter, drafts).tolist()
    setattr(drafter, draft_kv_guard.MARK, None)
    told = {"drafts": found, "probabilities": drafter._last_draft_probs.tolist()}
    return told | {"not guarded": draft_kv_guard.withhold(drafter, drafts).tolist()}


def beyond():
    """The context of a request that is longer than its drafter: tokens 598 to 601 of 600."""
    import torch
    from vllm.v1.spec_decode import draft_kv_guard

    slots, positions = torch.tensor([70, 71, 72, 73]), torch.arange(598, 602)
    drafter = Drafter([True], _context_slot_mapping_buffer=slots, _context_positions_buffer=positions)
    drafter._dflash_num_context = 4
    draft_kv_guard._hide_context(drafter, 600)
    return {"slots": slots.tolist(), "positions": positions.tolist()}


def _slots(runner, name, positions):
    (name,) = (id for id in runner.requests if id.startswith(name))
    blocks = runner.requests[name].block_ids[runner.drafter.kv_cache_gid]
    return [blocks[at // BLOCK] * BLOCK + at % BLOCK for at in positions]


def _values(cache):
    """[blocks, heads, block, 2 * size] of the CPU as [slots, values]; keys come first, packed across slots."""
    blocks, heads, size, _ = cache.shape
    values = cache.reshape(blocks, heads, 2, size, -1)[:, :, 1]
    return values.permute(0, 2, 1, 3).reshape(blocks * size, -1)


def grown(before, after):
    """What was counted since."""
    return {name: after[name] - before[name] for name in after}


if __name__ == "__main__":
    main()
