"""Batches of similar length: chats, documents and record questions take turns."""

import random
from collections.abc import Callable
from dataclasses import dataclass

import torch
from tokenizers import Tokenizer

from testbed import corpus
from testbed.corpus import Text
from testbed.tokenizer import Encoded, encode

PREFIX_WEIGHT = 0.03  # what is not to be learnt still keeps the tokens' statistics in view


@dataclass(frozen=True)
class Batch:
    """ids and learn, both [B, T]; padding is 0 and never learnt."""

    kind: str
    ids: torch.Tensor
    learn: torch.Tensor
    real: torch.Tensor

    def weight(self) -> torch.Tensor:
        """Loss weights, [B, T]."""
        return torch.where(self.learn, 1.0, PREFIX_WEIGHT) * self.real


def collate(rows: list[Encoded]) -> Batch:
    """Pad on the right."""
    length = max(len(row.ids) for row in rows)
    ids = torch.zeros(len(rows), length, dtype=torch.long)
    learn = torch.zeros(len(rows), length, dtype=torch.bool)
    real = torch.zeros(len(rows), length, dtype=torch.bool)
    for i, row in enumerate(rows):
        ids[i, : len(row.ids)] = torch.tensor(row.ids)
        learn[i, : len(row.ids)] = torch.tensor(row.learn)
        real[i, : len(row.ids)] = True
    return Batch(rows[0].kind, ids, learn, real)


@dataclass(frozen=True)
class Recipe:
    """What a stream of batches is made of; sizes are rows a batch."""

    asked_share: float
    chats: int = 32
    documents: int = 10
    records: int = 8
    cycle: tuple[str, ...] = ("chat", "records", "document")


class Stream:
    """Batches without end, drawn with a seed."""

    def __init__(self, tokenizer: Tokenizer, recipe: Recipe, seed: int) -> None:
        self.tokenizer, self.recipe, self.rng = tokenizer, recipe, random.Random(seed)
        self.n_drawn = 0

    def next(self, done: float) -> Batch:
        """The next batch; record lists grow with `done`, the share of the training that is over."""
        kind = self.recipe.cycle[self.n_drawn % len(self.recipe.cycle)]
        self.n_drawn += 1
        if kind == "chat":
            return self._rows(self.recipe.chats, lambda: corpus.draw_chat(self.rng, self.recipe.asked_share))
        if kind == "document":
            return self._rows(self.recipe.documents, lambda: corpus.draw_document(self.rng))
        return self._records(done)

    def _records(self, done: float) -> Batch:
        """Short lists with many questions first, then lists as long as the served ones."""
        long = self.rng.random() < (done - 0.4)
        n_records, n_rules = (
            (self.rng.randint(10, 15), 10) if long else (self.rng.randint(3, 7), self.rng.randint(0, 2))
        )
        n_rows = self.recipe.records // 2 if long else self.recipe.records
        n_turns = min(n_records, 6)
        return self._rows(n_rows, lambda: corpus.draw_records(self.rng, n_records, n_turns, n_rules))

    def _rows(self, n: int, draw: Callable[[], Text]) -> Batch:
        return collate([encode(self.tokenizer, draw()) for _ in range(n)])
