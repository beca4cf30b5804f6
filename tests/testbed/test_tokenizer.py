"""The tokenizer that was trained (engine environment)."""

# ruff: noqa: E402 - what needs the engine environment is imported after the skip

from pathlib import Path

import pytest

tokenizers = pytest.importorskip("tokenizers")

from testbed import corpus, prompts
from testbed import tokenizer as chat_format

TRAINED = Path(__file__).parents[2] / "testbed" / "weights" / "target" / "tokenizer.json"


@pytest.fixture(scope="module")
def bpe():
    return tokenizers.Tokenizer.from_file(str(TRAINED))


def test_it_has_1024_ids(bpe):
    assert bpe.get_vocab_size() == chat_format.VOCAB_SIZE


TEXTS = {"ko": "따뜻한 물 18도", "code": "def add_tax(price):\n    return 1", "rare": "漢字 ☕"}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_text_comes_back_unchanged(bpe, text):
    assert bpe.decode(bpe.encode(text, add_special_tokens=False).ids) == text


def test_a_shared_prefix_fills_three_blocks_of_128_tokens(bpe):
    for prompt in corpus.read_jsonl(prompts.PROMPTS / "shared_prefix.jsonl"):
        assert len(bpe.encode(prompt["messages"][0]["content"], add_special_tokens=False).ids) >= 400


def test_only_the_assistants_words_are_learnt(bpe):
    text = corpus.Text("quality", (("user", "What?"), ("assistant", "This.")))
    encoded = chat_format.encode(bpe, text)
    learnt = [token for token, learn in zip(encoded.ids, encoded.learn, strict=True) if learn]
    assert bpe.decode(learnt, skip_special_tokens=False) == "This.<|im_end|>"


def test_training_twice_gives_the_same_merges():
    first, second = (chat_format.train(corpus.sample(seed=1, n_texts=20)).to_str() for _ in range(2))
    assert first == second
