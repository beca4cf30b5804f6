"""A byte-level BPE of 1024 ids and the chat format (ChatML), trained on the corpus."""

from collections.abc import Iterable
from dataclasses import dataclass

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from testbed.corpus import Text

VOCAB_SIZE = 1024
END_OF_TEXT, START, END, MASK = SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|mask|>")
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


@dataclass(frozen=True)
class Encoded:
    """Token ids of one text, and for each whether the model is to learn to write it."""

    kind: str
    ids: tuple[int, ...]
    learn: tuple[bool, ...]


def train(texts: Iterable[Text]) -> Tokenizer:
    """The tokenizer. Digits stay single, so that numbers are copied digit by digit."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE,
        special_tokens=list(SPECIALS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    contents = [content for text in texts for _, content in text.messages]
    tokenizer.train_from_iterator([*contents, "system", "user", "assistant"], trainer)
    return tokenizer


def encode(tokenizer: Tokenizer, text: Text) -> Encoded:
    """A text as ids. In a chat only the assistant's words (and their end) are learnt; a document is learnt whole."""
    ids: list[int] = []
    learn: list[bool] = []
    for piece, learnt in _pieces(text):
        new = tokenizer.encode(piece, add_special_tokens=False).ids
        ids += new
        learn += [learnt] * len(new)
    return Encoded(text.kind, tuple(ids), tuple(learn))


def _pieces(text: Text) -> Iterable[tuple[str, bool]]:
    for role, content in text.messages:
        if role == "document":
            yield content + END_OF_TEXT, True
            continue
        yield f"{START}{role}\n", False
        yield f"{content}{END}", role == "assistant"
        yield "\n", False
