"""Rebuild everything: `python -m testbed.train --out testbed/weights`, with the engine environment's python.

Tokenizer, target, drafter, the three other drafters, their checksums: in this order, deterministic for one machine, one
torch and one number of threads.
"""

import os

os.environ |= {"OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": "2"}  # spinning threads starve each other when shared

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer

from testbed import corpus, drafter, export, target, tokenizer, variants
from testbed.batches import Recipe, Stream
from testbed.layers import Shape
from testbed.muon import Optimisers

TOKENIZER_TEXTS = 400
REPORT_EVERY = 20  # steps


@dataclass(frozen=True)
class Plan:
    """Steps, learning rates (Muon, AdamW) and seeds."""

    steps: int
    muon_lr: float
    adam_lr: float
    data_seed: int
    weight_seed: int


TARGET = Plan(steps=420, muon_lr=0.02, adam_lr=4e-3, data_seed=3, weight_seed=0)
TARGET_RECIPE = Recipe(asked_share=0.25)
DRAFT = Plan(steps=340, muon_lr=0.02, adam_lr=3e-3, data_seed=11, weight_seed=1)
DRAFT_RECIPE = Recipe(asked_share=0.15, chats=24, documents=10, records=8)
DRAFT_CYCLE = ("document", "records", "chat", "records", "document")  # kinds of lessons, in turn
PAGES = {"chat": 8, "document": 14, "records": 40}
ANCHORS = {"chat": 20, "document": 40, "records": 48}  # a row


class Progress:
    """Lines like `target 120/420  loss 0.812  41 s, 103 s to go`."""

    def __init__(self, name: str, steps: int) -> None:
        self.name, self.steps, self.started = name, steps, time.monotonic()
        self.seen: dict[str, float] = {}

    def note(self, step: int, **values: float) -> None:
        """Remember values; every `REPORT_EVERY` steps print them."""
        self.seen |= values
        done = step + 1
        if done % REPORT_EVERY and done != self.steps:
            return
        spent_s = time.monotonic() - self.started
        shown = "  ".join(f"{name} {value:.3f}" for name, value in self.seen.items())
        left_s = spent_s / done * (self.steps - done)
        print(f"{self.name} {done}/{self.steps}  {shown}  {spent_s:.0f} s, {left_s:.0f} s to go", flush=True)


def train_target(bpe: Tokenizer, shape: Shape, plan: Plan) -> target.Target:
    """A target that knows the corpus by heart and copies records from its context."""
    model = target.Target(shape, plan.weight_seed)
    stream = Stream(bpe, TARGET_RECIPE, plan.data_seed)
    optimisers, progress = Optimisers(model, plan.muon_lr, plan.adam_lr), Progress("target", plan.steps)
    for step in range(plan.steps):
        done = step / plan.steps
        batch = stream.next(done)
        loss = target.loss_of(model, batch.ids, batch.weight())
        loss.backward()
        optimisers.step(done)
        progress.note(step, **{batch.kind: loss.item()})
    export.round_weights(model)
    return model.requires_grad_(requires_grad=False)


def read_pages(model: target.Target, bpe: Tokenizer, plan: Plan) -> dict[str, list[drafter.Page]]:
    """The drafter's reading list: pages by kind."""
    return {kind: _read_kind(model, bpe, plan, kind, n) for kind, n in PAGES.items()}


def _read_kind(model: target.Target, bpe: Tokenizer, plan: Plan, kind: str, n: int) -> list[drafter.Page]:
    recipe = Recipe(DRAFT_RECIPE.asked_share, DRAFT_RECIPE.chats, DRAFT_RECIPE.documents, DRAFT_RECIPE.records, (kind,))
    stream = Stream(bpe, recipe, plan.data_seed)
    return [drafter.read(model, stream.next(done=i / n)) for i in range(n)]


def train_drafter(model: target.Target, bpe: Tokenizer, kind: drafter.Kind, plan: Plan) -> drafter.Drafter:
    """A drafter for the target, by distilling its greedy choices."""
    student = drafter.Drafter(model.shape, kind, plan.weight_seed)
    pages, mask_id = read_pages(model, bpe, plan), bpe.token_to_id(tokenizer.MASK)
    generator = torch.Generator().manual_seed(plan.data_seed)
    optimisers, progress = Optimisers(student, plan.muon_lr, plan.adam_lr), Progress("drafter", plan.steps)
    for step in range(plan.steps):
        name = DRAFT_CYCLE[step % len(DRAFT_CYCLE)]
        page = pages[name][int(torch.randint(len(pages[name]), (1,), generator=generator))]
        loss, right = drafter.loss_of(student, model, drafter.lesson(page, ANCHORS[name], generator), mask_id)
        loss.backward()
        optimisers.step(step / plan.steps)
        progress.note(step, **{name: right.item()})
    export.round_weights(student)
    return student


def write_drafters(out: Path, student: drafter.Drafter, bpe: Tokenizer) -> None:
    """The trained drafter, and the three others beside it."""
    shape, trained = student.shape, student.state_dict()
    export.write_drafter(out / "draft", trained, shape, bpe, student.kind)
    export.write_drafter(out / "draft_swa", trained, shape, bpe, variants.SLIDING)
    export.write_drafter(out / "draft_mixed", trained, shape, bpe, variants.MIXED)
    repeating = variants.repeat_weights(shape, bpe.token_to_id(tokenizer.MASK))
    export.write_drafter(out / "draft_repeat", repeating, shape, bpe, variants.REPEAT)


def rebuild(out: Path, steps: tuple[int, int]) -> None:
    """The whole recipe, from the words to the checksums."""
    shape = Shape()
    bpe = tokenizer.train(corpus.sample(seed=1, n_texts=TOKENIZER_TEXTS))
    model = train_target(bpe, shape, Plan(**vars(TARGET) | {"steps": steps[0]}))
    export.write_target(out / "target", model, shape, bpe)
    student = train_drafter(model, bpe, drafter.Kind(), Plan(**vars(DRAFT) | {"steps": steps[1]}))
    write_drafters(out, student, bpe)
    export.write_sums(out)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--target-steps", type=int, default=TARGET.steps)
    parser.add_argument("--draft-steps", type=int, default=DRAFT.steps)
    return parser.parse_args()


def main() -> None:
    """Train, write, say how long it took."""
    args, started = arguments(), time.monotonic()
    rebuild(args.out, (args.target_steps, args.draft_steps))
    print(f"wrote {args.out} in {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
