"""The line of a log that a sentence ends with."""

import pytest

from campaign.engine.last_words import last_words, reason_below

CORE = "(EngineCore pid=7) ERROR 11-30 12:41:44 [core.py:1198] "
HEADLINE = "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig"
REASON = "Value error, User-specified max_model_len (4096) is greater than the derived max_model_len (2048)."
ADVICE = "    For further information visit https://errors.pydantic.dev/2.12/v/value_error"
PYDANTIC = (HEADLINE, f"  {REASON} [type=value_error, input_value=ArgsKwargs((), {{}}), input_type=ArgsKwargs]", ADVICE)
NUMBER = "  Input should be a valid integer [type=int_parsing, input_value='x', input_type=str]"
USAGE = ("usage: api_server.py [-h] [--port PORT]", "api_server.py: error: argument --max-num-seqs: invalid int: 'x'")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (PYDANTIC, REASON),
        (tuple(CORE + line for line in PYDANTIC), REASON),
        ((HEADLINE, NUMBER, ADVICE), "Input should be a valid integer"),
        (USAGE, "argument --max-num-seqs: invalid int: 'x'"),
        (("vllm serve: error: unrecognized arguments: --nosuch 1",), "unrecognized arguments: --nosuch 1"),
        (("ValueError: the reason", "a line about an error", "a last line"), "ValueError: the reason"),
        (("ValueError: first", "torch.OutOfMemoryError: CUDA"), "torch.OutOfMemoryError: CUDA"),
        (("something failed with an error", "a last line"), "something failed with an error"),
        (("one", "two"), "two"),
        ((), ""),
    ],
    ids=["pydantic", "pydantic in a core", "pydantic's type", "argparse", "argparse of the script", "an error",
         "the later error", "speaks of an error", "plain", "nothing"],
)  # fmt: skip
def test_the_last_words_are_an_errors_own_sentence(lines: tuple[str, ...], words: str) -> None:
    assert last_words(lines) == words


def test_the_reason_of_a_validation_error_stands_below_its_headline() -> None:
    text = "\n".join(PYDANTIC)
    assert reason_below(text, text.index("ModelConfig") + len("ModelConfig")) == f": {REASON}"
    assert reason_below("ValueError: x\nmore\n", len("ValueError: x")) == ""
