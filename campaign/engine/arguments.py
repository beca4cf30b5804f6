"""The resolved layer of a serve argument: what the engine's configuration holds, against what its parser was given.

The engine's own parsing is taken as what was asked ("2k" is 2000 to it); where no process tells it, the text of the
configuration stands in. An argument that no process shows is "asked only": said, and never enough for a PASS where the
arms differ by it.
"""

import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from campaign.engine.reports import Report
from campaign.evidence import WitnessRow

PREFIX = "serve."
ASKED_ONLY = "asked only: no process shows what became of it"
SAME_TYPE = {"half": "float16", "float": "float32"}  # the engine's shorter names of a data type
AUTO = "auto"
NOTHING = object()


def row(knob: str, name: str, asked: Any, reports: Sequence[Report]) -> WitnessRow:
    """One row over all processes that show the argument; every rank of a role that shows it must."""
    roles = {report.role for report in reports if name in report.section("serve")}
    if not roles:
        return WitnessRow(knob, "asked", f"{name} in force", "shown by a process", ASKED_ONLY, True, "arguments")
    parsed = next((r.section("arguments")[name] for r in reports if name in r.section("arguments")), None)
    wanted = _as_parsed(asked, parsed)
    seen = {report: report.section("serve").get(name, NOTHING) for report in reports if report.role in roles}
    wrong = {report: value for report, value in seen.items() if not same(wanted, value)}
    told = wrong or seen
    words = ", ".join(dict.fromkeys("(absent)" if v is NOTHING else str(v) for v in told.values()))
    return WitnessRow(knob, "resolved", name, str(wanted), words, not wrong, ", ".join(map(str, told)))


def _as_parsed(asked: Any, parsed: Any) -> Any:
    """What was asked in the engine's own values; of a map only the keys that were asked, the rest are its defaults.

    Its parser makes a number of "auto" (-1), which stands for any.
    """
    if isinstance(asked, str) and asked.startswith("{"):
        with contextlib.suppress(ValueError):
            asked = json.loads(asked)
    if isinstance(asked, Mapping) and isinstance(parsed, Mapping):
        return {key: _as_parsed(value, parsed.get(key)) for key, value in asked.items()}
    return asked if parsed is None or asked == AUTO else parsed


def same(asked: Any, found: Any) -> bool:
    """Whether a value in force is the one that was asked for; "auto" is whatever the engine chose.

    A map that was asked for is held by a larger one; texts differ by case only where enums are spelled so.
    """
    if found is NOTHING or (isinstance(asked, str) and asked.lower() == AUTO):
        return found is not NOTHING
    if isinstance(asked, Mapping):
        return isinstance(found, Mapping) and all(same(value, found.get(key, NOTHING)) for key, value in asked.items())
    if isinstance(asked, list | tuple):
        return isinstance(found, list) and len(asked) == len(found) and all(map(same, asked, found))
    return _same_plain(asked, found)


def _same_plain(asked: Any, found: Any) -> bool:
    if isinstance(asked, bool) or isinstance(found, bool):  # a 1 is not true
        return asked is found
    if isinstance(asked, int | float) and isinstance(found, int | float):
        return asked == found
    texts = [str(value).lower() for value in (asked, found)]
    return SAME_TYPE.get(texts[0], texts[0]) == SAME_TYPE.get(texts[1], texts[1])
