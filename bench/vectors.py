"""Every entry of the reference vectors (tests/verdict/vectors.json), found anew and compared, leaf by leaf.

Brackets go through the record reader and the judge of `inspect`; tables through the functions of verdict; what the
product does not judge by (Welch, Fieller, the bootstrap) through bench.references.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isclose
from typing import Any

from bench.vector_datasets import FILE, datasets
from bench.vector_tables import tables

Data = Mapping[str, Any]
Leaves = Iterator[tuple[str, Any]]
COARSE = 2e-5
"""The vectors' Pocock constants are off by up to 1.5e-5: scipy's multivariate normal puts four looks at z 2.3612979."""
WORDS = ("description", "note", "formula", "how", "purpose", "tolerance")  # leaves that are words, not figures
INPUTS = {  # what the other leaves of a row are computed from
    "decision_table": ("kind", "lo", "hi", "bound", "margin"),
    "clopper_pearson": ("k", "n"),
    "mcnemar_exact": ("base_ok_cand_bad", "base_bad_cand_ok"),
    "fisher_two_sided": ("cand", "base"),
    "diff_ci_newcombe95": ("cand", "base"),
    "example": ("n", "m", "rho"),
    "multiplicity": ("p",),
    "fpr_ci95": ("false_positives", "runs"),
    "normal_mixture_cs": ("se", "tau", "alpha"),
    "planning": ("schedule", "borrowed", "sd_bootmean", "sd_accept_pp"),
    "check_against_textbook": ("textbook",),
}


@dataclass(frozen=True)
class Compared:
    """One leaf: what the vectors say and what was found; `found` is None where nothing computed it."""

    path: str
    wanted: Any
    found: Any

    @property
    def holds(self) -> bool:
        """Equal words and counts; numbers to 1e-9, those that are searched for to 1e-6."""
        return self.found is not None and _alike(self.wanted, self.found, self.path)


def compared() -> list[Compared]:
    """All leaves of the vectors with what the product finds."""
    vectors = json.loads(FILE.read_text(encoding="utf-8"))
    found = dict(_found(vectors))
    return [Compared(path, wanted, found.get(path)) for path, wanted in _leaves(vectors)]


def _found(vectors: Data) -> Leaves:
    yield from tables(vectors)
    yield from datasets(vectors)


def _leaves(vectors: Data) -> Leaves:
    for name, part in vectors.items():
        if name == "datasets":
            for data in part:
                yield from _below(f"datasets.{data['id']}", data["expected"], "expected")
        elif name != "meta":
            yield from _below(name, part, name)


def _below(path: str, value: Any, name: str) -> Leaves:
    """The leaves below a value: a list of numbers is one leaf, a list of rows has a leaf a column."""
    if isinstance(value, dict):
        for key, one in value.items():
            if key not in WORDS and key not in INPUTS.get(name, ()):
                yield from _below(f"{path}.{key}", one, name if key.isdecimal() else key)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for at, one in enumerate(value):
            yield from _below(f"{path}.{at}", one, name)
    elif value is not None:
        yield path, value


def _alike(wanted: Any, found: Any, path: str) -> bool:
    if isinstance(wanted, list):
        return len(wanted) == len(found) and all(_alike(a, b, path) for a, b in zip(wanted, found, strict=True))
    if isinstance(wanted, bool | str | int) and not isinstance(found, float):
        return bool(wanted == found)
    if "pocock" in path:
        return isclose(wanted, found, rel_tol=COARSE)
    searched = "mde" in path or "power" in path
    return isclose(wanted, found, rel_tol=1e-6 if searched else 1e-8, abs_tol=1e-6 if "power" in path else 1e-11)
