"""The asynchronous scheduler: from its second step on a request has as many batches in flight as fit."""

from vllm.v1.core.sched.scheduler import Scheduler


class AsyncScheduler(Scheduler):
    """Several batches at a time."""

    def batches(self, step: int) -> int:
        """One in the first step, then all."""
        return self.max_batches if step else 1
