"""The engine with its overlays, in a folder of its own that goes first on the engine's PYTHONPATH.

The folder's name is the sha256 of all that went in: the wheel's RECORD text (while copying, every file is checked
against it, so it does speak for the tree), the hash of every file that no RECORD speaks for, size and time of the
compiled modules that are linked to (an engine installed again is another stage), and the texts that the overlays make
(whose preimages are hashed each time by `check`). An engine without overlays is staged the same way, so that two arms
differ by their overlays only.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from overlays.base import BaseTree
from overlays.compose import Composed, compose
from overlays.errors import DriftError
from overlays.making import making
from overlays.rows import Row
from overlays.tree import compile_bytecode, compiled, copy_package, copy_tree, expect_sealed, seal, unrecorded, write
from overlays.values import Overlay, Plugin

FORMAT = "2"
ENTRY_POINT_GROUP = "vllm.general_plugins"


@dataclass(frozen=True)
class StagedFile:
    """One file that the overlays changed or added, as it must be found (and loaded) in the engine.

    `module` is empty for a data file: nothing imports it, so it is attested by its path and hash.
    """

    path: str
    module: str
    sha256: str
    overlay: str = ""

    @property
    def asked(self) -> str | dict[str, str]:
        """How the engine's report is asked for it: a module's name, or the path of a data file."""
        return self.module or {"file": self.path}


@dataclass(frozen=True)
class Stage:
    """A staged engine. `path` goes on PYTHONPATH, with PYTHONSAFEPATH=1 and a working directory that is not ours."""

    path: Path
    digest: str
    files: tuple[StagedFile, ...]
    overlays: tuple[str, ...]
    variables: frozenset[str]
    rows: tuple[Row, ...] = ()


def check(base: BaseTree, overlays: Sequence[Overlay]) -> None:
    """Whether these overlays fit this engine, by hashes alone. Raises OverlayError, or DriftError for a hash."""
    compose(base, overlays)


def stage(base: BaseTree, overlays: Sequence[Overlay], cache: Path) -> Stage:
    """Make the stage under `cache`, or find it there and verify it. Two makers at once are fine: the first one wins."""
    composed = compose(base, overlays)
    digest = _address(base, composed)
    path = cache.absolute() / digest
    if not path.is_dir():
        _make(base, composed, path)
    files = tuple(
        StagedFile(name, module_name(name), sha256(content).hexdigest(), composed.owners[name])
        for name, content in sorted(composed.files.items())
    )
    variables = frozenset(name for overlay in composed.overlays for name in overlay.variables)
    names = tuple(overlay.name for overlay in composed.overlays)
    made = Stage(path, digest, files, names, variables, composed.rows)
    verify(made)
    return made


def verify(stage: Stage) -> None:
    """Hash every file of the stage again. Raises DriftError that names the first one that is not as it was made."""
    sealed = expect_sealed(stage.path)
    for file in stage.files:
        found = sealed.files.get(file.path, "not there")
        if found != file.sha256:
            raise DriftError(
                f"{stage.path / file.path} is {found}, but its overlay pins {file.sha256}; "
                f"remove {stage.path} to have it made again"
            )


def _make(base: BaseTree, composed: Composed, path: Path) -> None:
    # The plain engine is copied and compiled once; what overlays are put on is a copy of that, bytecode included.
    plain = stage(base, (), path.parent).path if composed.overlays else None
    path.parent.mkdir(parents=True, exist_ok=True)
    with making(path.parent) as aside:
        if plain is None:
            copy_package(base, aside)
            compile_bytecode(base.python, aside, path, [aside])
        else:
            copy_tree(plain, aside, composed.files)
            _put_on(base, composed, aside, path)
        seal(aside)
        _move_into_place(aside, path)


def _put_on(base: BaseTree, composed: Composed, tree: Path, final: Path) -> None:
    for name, content in composed.files.items():
        write(tree / name, content)
    for overlay in composed.overlays:
        if overlay.plugin:
            _write_entry_point(tree, overlay.plugin)
    sources = [tree / name for name in composed.files if name.endswith(".py")]
    if sources:
        compile_bytecode(base.python, tree, final, sources)


def _write_entry_point(tree: Path, plugin: Plugin) -> None:
    info = tree / f"{plugin.package}-0.dist-info"
    write(info / "METADATA", f"Metadata-Version: 2.1\nName: {plugin.package}\nVersion: 0\n".encode())
    write(info / "entry_points.txt", f"[{ENTRY_POINT_GROUP}]\n{plugin.entry_point_name} = {plugin.object}\n".encode())


def _move_into_place(aside: Path, path: Path) -> None:
    try:
        aside.rename(path)
    except OSError:
        # Another process made the same stage meanwhile; the same digest has the same content.
        if not path.is_dir():
            raise


def _address(base: BaseTree, composed: Composed) -> str:
    digest = sha256()
    for part in _inputs(base, composed):
        digest.update(f"{len(part)}:".encode() + part)
    return digest.hexdigest()


def _inputs(base: BaseTree, composed: Composed) -> Iterator[bytes]:
    yield FORMAT.encode()
    # The compiled modules are links to here, and the bytecode is this interpreter's.
    yield os.fsencode(base.package.resolve())
    yield os.fsencode(base.python.resolve())
    yield base.record.read_bytes() if base.record else b""
    for path, link in sorted(compiled(base).items()):
        yield f"{path} {link}".encode()
    for path, digest in sorted(unrecorded(base).items()):
        yield f"{path} {digest}".encode()
    for path, content in sorted(composed.files.items()):
        yield path.encode()
        yield content
    for plugin in (overlay.plugin for overlay in composed.overlays if overlay.plugin):
        yield f"{plugin.entry_point_name} = {plugin.object}".encode()


def module_name(path: str) -> str:
    """The module that a path below the stage is imported as; empty for a data file."""
    if not path.endswith(".py"):
        return ""
    return path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
