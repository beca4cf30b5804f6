"""What a manifest says, as frozen values. They are made in overlays.manifest only."""

from dataclasses import dataclass
from pathlib import Path

from overlays.errors import OverlayError


@dataclass(frozen=True)
class Witness:
    """What the engine itself must show for one value of a knob: resolved fields, and bounds of behaved counters."""

    resolved: dict[str, object]
    behaved: dict[str, dict[str, float]]


@dataclass(frozen=True)
class Knob:
    """One named switch with a closed set of values, handed to the engine in an environment variable."""

    name: str
    variable: str
    values: tuple[str, ...]
    default: str
    witness: dict[str, Witness]


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
    """The files for one engine version; `builds` share the same Python sources (cpu, cuda)."""

    version: str
    builds: tuple[str, ...]
    files: tuple[PatchedFile, ...]


@dataclass(frozen=True)
class Plugin:
    """A vllm.general_plugins entry point; `wraps` are the engine files that it is pinned to."""

    entry_point_name: str
    object: str
    payload: Path
    wraps: tuple[str, ...]

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

    def target(self, version: str, build: str) -> Target:
        """The target for this engine. Raises OverlayError that lists those that there are."""
        for target in self.targets:
            if target.version == version and build in target.builds:
                return target
        there = ", ".join(f"{t.version} ({', '.join(t.builds)})" for t in self.targets)
        raise OverlayError(f"{self.name} has no target for vLLM {version} ({build}); it has: {there}")
