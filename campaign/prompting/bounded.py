"""What a team's own expressions may cost: they are searched for in a child process that may use so much CPU.

Some regular expressions take longer than the universe on one answer, and nothing interrupts a search within Python.
The bound is CPU time, so that a busy machine changes no verdict. Schemas hold expressions too.
"""

import json
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from campaign.prompting import schemas

CPU_S = 5
LONGEST_S = 600.0  # by the clock; a child that waits for something
ROOT = Path(__file__).resolve().parents[2]
CHILD = "import sys; sys.path.insert(0, sys.argv[1]); from campaign.prompting.bounded import child; child()"
KILLED = (-signal.SIGXCPU, -signal.SIGKILL)


class TooLongError(Exception):
    """The expression needs more than CPU_S for this answer: nothing is known of it."""


def is_in(pattern: str, text: str) -> bool:
    """Whether an expression is found in a text. Raises TooLongError; ValueError where the child cannot say."""
    return bool(_asked("pattern", pattern, text))


def misfit(schema: dict[str, Any], value: Any) -> str:
    """As schemas.misfit, in a child where the schema holds expressions. Raises as `is_in` does."""
    if not any(schemas.patterns(schema)):
        return schemas.misfit(schema, value)
    return str(_asked("schema", schema, value))


def _asked(kind: str, wanted: Any, found: Any) -> Any:
    command = [sys.executable, "-I", "-c", CHILD, str(ROOT)]
    question = json.dumps([CPU_S, kind, wanted, found])
    try:
        done = subprocess.run(command, input=question, capture_output=True, text=True, timeout=LONGEST_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise TooLongError(f"the expression gave no answer in {LONGEST_S:g} s") from error
    if done.returncode in KILLED:
        raise TooLongError(f"the expression took over {CPU_S} s of CPU")
    if not done.stdout:
        raise ValueError((done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1])
    return json.loads(done.stdout)


def child() -> None:
    """The child's end: one question on stdin, its answer on stdout."""
    cpu_s, kind, wanted, found = json.load(sys.stdin)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
    answer = schemas.misfit(wanted, found) if kind == "schema" else re.search(wanted, found) is not None
    json.dump(answer, sys.stdout)
