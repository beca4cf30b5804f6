"""The line of a log that says most about a death: an error's own sentence, never the page that it links to."""

import re
from collections.abc import Iterable

WHO = r"^(?:\(\w+(?: pid=\d+)?\) )?(?:(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d [\d:.]+ \[[^\]]*\] )?\s*"
ARGUMENT = re.compile(  # of argparse, below its usage: the engine never started
    WHO + r"[\w.-]+(?: [\w.-]+)*: error: ((?:argument |unrecognized arguments|the following arguments|ambiguous ).*)$",
    re.MULTILINE,
)
VALIDATION = re.compile(WHO + r"(\S.*?) \[type=\w+, input_value=", re.MULTILINE)  # of pydantic, below its headline
ERROR = re.compile(r"(?:^|[\s.])[A-Z]\w*(?:Error|Exception): \S")
ADVICE = "For further information visit"
BELOW = 2_000  # characters below a headline in which its reason stands


def last_words(lines: Iterable[str]) -> str:
    """The last line that is an error's own sentence; else the last that speaks of an error; else the last."""
    kept = [line.strip() for line in lines if ADVICE not in line]
    said = [words for line in kept if (words := _sentence(line))]
    return (said or [line for line in kept if "rror" in line] or kept or [""])[-1]


def _sentence(line: str) -> str:
    found = ARGUMENT.search(line) or VALIDATION.search(line)
    return found[1] if found else line if ERROR.search(line) else ""


def reason_below(text: str, end: int) -> str:
    """The reason that pydantic prints below the headline that ends at `end`; empty where there is none."""
    found = VALIDATION.search(text, end, end + BELOW)
    return f": {found[1]}" if found else ""
