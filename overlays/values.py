"""What a manifest says, as frozen values. They are made in overlays.manifest only."""

from dataclasses import dataclass, field
from pathlib import Path

from overlays.errors import OverlayError


@dataclass(frozen=True)
class Witness:
    """What the engine itself must show for one value of a knob: resolved fields, and bounds of behaved counters."""

    resolved: dict[str, object]
    behaved: dict[str, dict[str, float]]


@dataclass(frozen=True)
class Served:
    """The serve arguments that one value of a knob stands for, and why; `methods` empty is every drafting method."""

    arguments: dict[str, bool | int | str]
    methods: tuple[str, ...]
    reason: str

    def for_method(self, method: str | None) -> bool:
        """Whether the arguments are given to an engine that drafts so; None drafts nothing."""
        return not self.methods or method in self.methods


@dataclass(frozen=True)
class Knob:
    """One named switch with a closed set of values: it reaches the engine in a variable, as serve arguments, or both.

    `not_given` is the value that gives the engine nothing. `legacy` reads a team's older word (in a profile) as a
    value of today, with the note that says so.
    """

    name: str
    variable: str | None
    values: tuple[str, ...]
    default: str
    witness: dict[str, Witness]
    served: dict[str, Served] = field(default_factory=dict)  # by value
    profile_key: str | None = None
    not_given: str | None = None
    legacy: dict[str, tuple[str, str]] = field(default_factory=dict)  # older word -> (value, note)


@dataclass(frozen=True)
class PatchedFile:
    """One engine file: patched (patch), added (added, no preimage), or only watched (neither; both hashes equal)."""

    path: str
    patch: Path | None
    added: Path | None
    preimage_sha256: str | None
    postimage_sha256: str


@dataclass(frozen=True)
class Target:
    """The files for one engine version; `builds` share the same Python sources (cpu, cuda).

    A target that `rebase` made is not `reviewed` until a person says so, and is not staged before.
    """

    version: str
    builds: tuple[str, ...]
    files: tuple[PatchedFile, ...]
    reviewed: bool = True


@dataclass(frozen=True)
class Landed:
    """A part of the overlay that some engines have by themselves: those in whose file `path` this text stands.

    `instead_of` is a text in the added lines of the hunks that are then needless; "" is every hunk of the file.
    """

    what: str
    path: str
    text: str
    instead_of: str


@dataclass(frozen=True)
class Plugin:
    """A vllm.general_plugins entry point, pinned to the engine files that it `wraps` and to its payload's digest.

    `brings` are files of the room `kernels`, staged inside its package: the engine runs what the proofs ran.
    """

    entry_point_name: str
    object: str
    payload: Path
    wraps: tuple[str, ...]
    payload_sha256: str
    brings: tuple[Path, ...] = ()

    @property
    def package(self) -> str:
        """The top-level package that the payload becomes in the stage."""
        return self.object.split(":")[0].split(".")[0]


@dataclass(frozen=True)
class Upstream:
    """Where the change stands upstream, and when the overlay can go."""

    link: str
    status: str
    drop_when: str


@dataclass(frozen=True)
class Overlay:
    """One overlay as its manifest says. `variables` are all the environment variables it reads, its knobs' too."""

    name: str
    why: str
    owner: str
    upstream: Upstream
    requires: tuple[str, ...]
    async_safe: bool
    async_reason: str
    knobs: tuple[Knob, ...]
    targets: tuple[Target, ...]
    plugin: Plugin | None
    variables: tuple[str, ...]
    folder: Path
    landed: tuple[Landed, ...] = ()

    def target(self, version: str, build: str) -> Target:
        """The target for this engine. Raises OverlayError that lists those that there are."""
        for target in self.targets:
            if target.version == version and build in target.builds:
                return target
        there = ", ".join(f"{t.version} ({', '.join(t.builds)})" for t in self.targets)
        raise OverlayError(f"{self.name} has no target for vLLM {version} ({build}); it has: {there}")
