"""One composed manifest: every file that a set of overlays touches, as pinned, as found, and whether it fits."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from overlays.errors import DriftError, OverlayError


class Kind(StrEnum):
    """How an overlay touches a file."""

    patched = "patched"
    added = "added"
    watched = "watched"
    plugin = "plugin"


@dataclass(frozen=True)
class Row:
    """One file of one overlay. `found` is the engine's file after the overlays before it; None where there is none.

    `problem` is empty where the row fits; with `drift` it is a hash (exit 6), without it a wrong configuration (2).
    """

    overlay: str
    path: str
    kind: Kind
    preimage: str | None
    found: str | None
    postimage: str
    problem: str = ""
    drift: bool = False

    @property
    def state(self) -> str:
        """fits, DRIFT or WRONG."""
        if not self.problem:
            return "fits"
        return "DRIFT" if self.drift else "WRONG"

    def plain(self) -> dict[str, object]:
        """The row as JSON data: overlays.json of a run is made of these."""
        return {
            "overlay": self.overlay,
            "path": self.path,
            "kind": self.kind.value,
            "preimage_sha256": self.preimage,
            "found_sha256": self.found,
            "postimage_sha256": self.postimage,
            "fits": not self.problem,
        }


def expect_fit(rows: Sequence[Row]) -> None:
    """Raise one error that names every row that does not fit: DriftError when hashes are all that is wrong."""
    wrong = [row for row in rows if row.problem]
    if not wrong:
        return
    kind = DriftError if all(row.drift for row in wrong) else OverlayError
    if len(wrong) == 1:
        raise kind(wrong[0].problem)
    told = "\n  ".join(row.problem for row in wrong)
    raise kind(f"{len(wrong)} of {len(rows)} files do not fit this engine:\n  {told}")
