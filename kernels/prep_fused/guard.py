"""Which steps the kernel may take. Everything else is the stock chain's, with the reason in words."""

from dataclasses import dataclass
from typing import Any

LONGEST_QUERY = 128  # one element a thread of four warps: what `aot` shows to need no shared memory and no barrier


@dataclass(frozen=True)
class Refusal:
    """Why the stock chain prepares this step: a name to count by and a sentence."""

    name: str
    why: str


class PlanError(Exception):
    """A plan that cannot be built or a step that must not be launched; the sentence says why and what to do."""


def refusal_of_runner(runner: Any) -> Refusal | None:
    """What no step of this runner may be fused for: asked once, when the plan is built."""
    checks = (
        (runner.use_pp, "pipeline_parallel", "pipeline ranks prepare inputs that the kernel does not know"),
        (runner.use_dcp, "decode_context_parallel", "its local seq_lens are prepared by the stock chain"),
        (runner.pcp_manager is not None, "prefill_context_parallel", "its manager partitions the batch"),
        (runner.adaptive_verification is not None, "adaptive_verification", "query lengths are decided on the device"),
        (runner.model_config.rswa_window is not None, "rswa", "prompt lengths are gathered by the stock chain"),
        (runner.block_tables.cp_size != 1, "context_parallel", "its slots are interleaved over ranks"),
        (runner.block_tables.num_kv_cache_groups == 0, "no_kv_groups", "there is nothing to gather"),
    )
    return next((Refusal(name, why) for wrong, name, why in checks if wrong), None)


@dataclass(frozen=True)
class Limits:
    """What a plan was built for."""

    max_reqs: int
    max_tokens: int
    max_query: int  # tokens of one request in one step

    def refusal(self, drafts: Any, batch: Any, descriptor: Any) -> Refusal | None:
        """Why the stock chain must prepare this step; None: the kernel may."""
        if batch.has_prefill:
            rows = int(batch.is_prefilling_np.sum())
            return Refusal("prefill", f"{rows} of {len(batch.req_ids)} rows are prefilled; their prompt is copied too")
        if not drafts:
            return Refusal("no_drafts", "no drafts are scheduled; the stock chain counts logits in another way then")
        longest = int(batch.num_scheduled_tokens.max())
        if longest > self.max_query:
            return Refusal("long_query", f"a query of {longest} tokens; the plan was built for {self.max_query}")
        return self._too_large(batch, descriptor)

    def _too_large(self, batch: Any, descriptor: Any) -> Refusal | None:
        rows = max(len(batch.req_ids), descriptor.num_reqs or 0)
        if rows > self.max_reqs:
            return Refusal("many_requests", f"{rows} rows with padding; the buffers hold {self.max_reqs}")
        tokens = max(batch.num_tokens, descriptor.num_tokens)
        if tokens > self.max_tokens:
            return Refusal("many_tokens", f"{tokens} tokens with padding; the buffers hold {self.max_tokens}")
        return None


def block_for(longest: int) -> int:
    """The smallest power of two that holds `longest` (trap d). Raises PlanError outside of 1 .. LONGEST_QUERY."""
    if not 1 <= longest <= LONGEST_QUERY:
        raise PlanError(
            f"a query of {longest} tokens was asked for, wanted 1 to {LONGEST_QUERY}, for which the kernel was "
            "compiled and checked: build the plan for shorter queries, or run the stock chain"
        )
    return 1 << (longest - 1).bit_length()
