"""Whether a step's attention metadata may be left as it was, and whose layers a KV group holds (traps b and f).

The rule is a whitelist: a drafter that reads what it is given, a builder that writes to the device while it builds, and
anything unknown, is refused.
"""

from collections.abc import Collection, Iterable
from enum import Enum

from .guard import Refusal

IGNORES_METADATA = frozenset({"DFlashSpeculator"})  # its `propose` never reads `attn_metadata` and `slot_mappings`
HOST_ONLY_BUILDERS = frozenset({"TritonAttentionMetadataBuilder"})  # launches and copies nothing, without EXTRAS
EXTRAS = frozenset({"use_cascade", "mm_ranges", "rswa_window"})  # with one of these it does write to the device


class Kind(Enum):
    """Whose attention layers a KV group holds."""

    TARGET = "target"
    DRAFT = "draft"
    MIXED = "mixed"


def kind_of_group(layers: Iterable[str], draft_layers: Collection[str]) -> Kind:
    """By membership: a drafter's layers go on with the target's numbers, so their names tell nothing."""
    drafted = [layer in draft_layers for layer in layers]
    if drafted and all(drafted):
        return Kind.DRAFT
    return Kind.MIXED if any(drafted) else Kind.TARGET


def refusal_of_reuse(
    speculator: type, builders: Iterable[type], full_graph: bool, extras: Collection[str] = ()
) -> Refusal | None:
    """Why the metadata must be built; None: nobody reads it in this step. Subclasses are not their parents here.

    `extras` are those of EXTRAS that the step has: a shared prefix, multimodal ranges, R-SWA.
    """
    if speculator.__name__ not in IGNORES_METADATA:
        return Refusal("speculator", f"{speculator.__name__} reads the metadata that it is given, or nobody has looked")
    if not full_graph:
        return Refusal("no_full_graph", "the forward reads the metadata unless a full graph is replayed")
    if extras:
        return Refusal("extras", f"with {', '.join(sorted(extras))} a builder writes to the device while building")
    unknown = sorted(builder.__name__ for builder in builders if builder.__name__ not in HOST_ONLY_BUILDERS)
    if unknown:
        return Refusal("builder", f"{', '.join(unknown)} may write to the device while building")
    return None
