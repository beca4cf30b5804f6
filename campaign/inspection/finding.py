"""What was read in one file, or in several of one kind together: rows of words, numbers, and what is concluded."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from campaign.errors import ExitCode
from verdict.words import Verdict

Row = tuple[str, str]
Rows = Iterator[Row]
WORDS = {
    ExitCode.FAIL: "FAIL",
    ExitCode.INCONCLUSIVE: "INCONCLUSIVE",
    ExitCode.VOID: "VOID",
    ExitCode.INVALID: "INVALID",
}
CODES = {Verdict.PASS: ExitCode.PASS} | {Verdict(word): code for code, word in WORDS.items()}


def code_of(verdict: Verdict) -> ExitCode:
    """The exit code of a verdict."""
    return CODES[verdict]


@dataclass(frozen=True)
class Finding:
    """What was read, line by line, and the exit code that says the worst of it.

    `word` is the verdict where one was reached; it is None where files were only read and nothing wrong was found.
    `numbers` are finite, their names carry their units.
    """

    kind: str
    files: tuple[str, ...]
    head: str
    rows: tuple[Row, ...] = ()
    code: ExitCode = ExitCode.PASS
    judged: bool = False  # a PASS is a verdict, not just a file in which nothing wrong was read
    numbers: dict[str, float] = field(default_factory=dict)
    width: int = 12  # of the column that names what is told

    @property
    def word(self) -> str | None:
        """PASS, FAIL, INCONCLUSIVE, VOID, INVALID; None for a mere reading."""
        return WORDS.get(self.code, "PASS" if self.judged else None)

    @property
    def told_numbers(self) -> dict[str, float]:
        """What of the numbers may be told: none where nothing was measured, no rate of what failed.

        A FAIL that a rule over items or readings reached has its bounds in its numbers, and keeps them.
        """
        counts = self.code in (ExitCode.PASS, ExitCode.INCONCLUSIVE) or (self.judged and self.code is ExitCode.FAIL)
        return self.numbers if counts else {}

    @property
    def lines(self) -> tuple[str, ...]:
        """As the console shows it."""
        return (self.head, *(f"  {what:<{self.width}}{told}" for what, told in self.rows))
