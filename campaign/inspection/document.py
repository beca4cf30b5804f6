"""What was found, as one JSON document (docs/schemas/inspect.json), and the one exit code of it all."""

from collections.abc import Sequence

from campaign.errors import ExitCode, worst
from campaign.inspection.finding import Finding
from campaign.journal import dumps

SCHEMA = 1


def code(found: Sequence[Finding]) -> ExitCode:
    """The worst of all."""
    return worst([one.code for one in found])


def document(found: Sequence[Finding]) -> str:
    """One JSON document: the exit code, and each finding with its rows and its numbers."""
    plain = {"schema": SCHEMA, "exit_code": int(code(found)), "findings": [_plain(one) for one in found]}
    return dumps(plain, indent=1)


def _plain(one: Finding) -> dict[str, object]:
    return {
        "kind": one.kind,
        "files": list(one.files),
        "verdict": one.word,
        "exit_code": int(one.code),
        "head": one.head,
        "rows": [{"what": what, "told": told} for what, told in one.rows],
        "numbers": one.told_numbers,
    }
