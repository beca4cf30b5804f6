"""A copy of the engine package: sources copied, compiled modules linked, bytecode of its own, a listing, read-only.

A copy and not a farm of links, because the engine looks for some data files beside realpath(__file__).
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from overlays.base import BaseTree, hash_file, recorded
from overlays.errors import DriftError, OverlayError

LISTING = "stage.json"
COMPILED = re.compile(r"\.so(\.\d+)*$")
COMPILE_TIMEOUT_S = 600
FOLDER_MODE, FILE_MODE = 0o555, 0o444


@dataclass(frozen=True)
class Listing:
    """What a tree holds: sha256 of each file; target, size and mtime (ns) of each link, to a folder too."""

    files: dict[str, str]
    links: dict[str, list[str | int]]


def package_files(base: BaseTree) -> Iterator[Path]:
    """Every file of the engine package but its bytecode, in a fixed order. Raises OverlayError for a linked folder."""
    for folder, folders, names in os.walk(base.package):
        for linked in _links(folder, folders):
            raise OverlayError(
                f"{linked} is a link to the folder {linked.resolve()}, which no stage would hold; install the engine "
                "again from its wheel, or put the folder itself there"
            )
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        yield from (Path(folder, name) for name in sorted(names) if not name.endswith(".pyc"))


def unrecorded(base: BaseTree) -> dict[str, str]:
    """The sha256 of the files that the wheel's RECORD does not speak for (all of them where there is no RECORD)."""
    spoken_for = recorded(base.record) if base.record else {}
    paths = {str(file.relative_to(base.root)): file for file in package_files(base)}
    return {path: hash_file(file) for path, file in paths.items() if path not in spoken_for}


def compiled(base: BaseTree) -> dict[str, list[str | int]]:
    """Target, size and mtime (ns) of every compiled module, as a stage made now would link to it."""
    modules = (file for file in package_files(base) if COMPILED.search(file.name))
    return {str(file.relative_to(base.root)): _stated(file.resolve()) for file in modules}


def copy_package(base: BaseTree, into: Path) -> None:
    """Copy every file of the engine package; link the compiled modules.

    Raises DriftError for a file that is not what the wheel's RECORD says: the installed engine was edited, and a
    stage made now would differ from one made before by more than its overlays.
    """
    spoken_for = recorded(base.record) if base.record else {}
    for file in package_files(base):
        path = str(file.relative_to(base.root))
        if path in spoken_for and hash_file(file) != spoken_for[path]:
            raise DriftError(
                f"{file} is {hash_file(file)}, but {base.record} says {spoken_for[path]}: "
                "the installed engine was edited in place; install it again"
            )
        _place(file, into / path)


def copy_tree(plain: Path, into: Path, but: Collection[str]) -> None:
    """Copy a sealed tree, links as links and bytecode too, but not the files in `but` nor their bytecode."""
    for folder, _, names in os.walk(plain):
        for file in (Path(folder, name) for name in names):
            path = str(file.relative_to(plain))
            if path != LISTING and _source(path) not in but:
                copy = into / path
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy, follow_symlinks=False)


def write(file: Path, content: bytes) -> None:
    """Write a file and the folders above it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


def compile_bytecode(python: Path, tree: Path, final: Path, files: Sequence[Path]) -> None:
    """Compile with the engine's own interpreter; checked-hash: the source decides, whatever its time and size.

    Two processes of our own share the files, each its own session: compileall's workers would outlive it, these end
    with whatever interrupts us (and by themselves, should we be killed).
    """
    command = [str(python), "-I", "-m", "compileall", "-q", "--invalidation-mode", "checked-hash"]
    sources = [s for file in files for s in (sorted(file.rglob("*.py")) if file.is_dir() else [file])]
    shares = [share for share in (sources[::2], sources[1::2]) if share]
    started: list[subprocess.Popen[str]] = []
    try:
        for share in shares:
            words = [*command, "-s", str(tree), "-p", str(final), *map(str, share)]
            started.append(_piped(words))
        told = [process.communicate(timeout=COMPILE_TIMEOUT_S)[0].strip() for process in started]
    except (OSError, subprocess.TimeoutExpired) as error:
        raise OverlayError(f"{python} cannot compile the stage: {error}") from error
    finally:
        for process in started:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
    if any(process.returncode for process in started):
        raise OverlayError(f"the stage does not compile: {' '.join(told).strip()[-2000:]}")


def _piped(words: Sequence[str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        words, cwd="/", start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def seal(tree: Path) -> None:
    """Write the listing, then take away every right to write."""
    listing = listed(tree)
    write(tree / LISTING, json.dumps({"files": listing.files, "links": listing.links}, indent=0).encode())
    for folder, _, names in os.walk(tree, topdown=False):
        for name in names:
            if not Path(folder, name).is_symlink():
                Path(folder, name).chmod(FILE_MODE)
        Path(folder).chmod(FOLDER_MODE)


def listed(tree: Path) -> Listing:
    """What `tree` holds now, its own listing left out."""
    files: dict[str, str] = {}
    links: dict[str, list[str | int]] = {}
    for folder, folders, names in os.walk(tree):
        for file in (*_links(folder, folders), *(Path(folder, name) for name in names)):
            path = str(file.relative_to(tree))
            if file.is_symlink():
                links[path] = _link(file)
            elif path != LISTING:
                files[path] = hash_file(file) if file.is_file() else "no regular file"
    return Listing(files, links)


def expect_sealed(tree: Path) -> Listing:
    """The listing, after every file was hashed again. Raises DriftError naming the first file that differs."""
    try:
        written = json.loads((tree / LISTING).read_text(encoding="utf-8"))
        sealed = Listing(written["files"], written["links"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DriftError(
            f"the stage {tree} has no readable {LISTING} ({error}); remove the folder to have it made again"
        ) from error
    now = listed(tree)
    _compare(tree, sealed.files, now.files)
    _compare(tree, sealed.links, now.links)
    return sealed


def discard(tree: Path) -> None:
    """Remove a tree that may be read-only already."""
    for folder, _, _ in os.walk(tree):
        Path(folder).chmod(0o755)
    shutil.rmtree(tree)


def _place(file: Path, copy: Path) -> None:
    copy.parent.mkdir(parents=True, exist_ok=True)
    if COMPILED.search(file.name):
        copy.symlink_to(file.resolve())
    else:
        shutil.copyfile(file, copy)


def _source(path: str) -> str:
    """The source that a path in __pycache__ was compiled from; the path itself for any other."""
    folder, cache, name = path.rpartition("__pycache__/")
    return f"{folder}{name.split('.')[0]}.py" if cache else path


def _links(folder: str, folders: Sequence[str]) -> Iterator[Path]:
    """The links among the folders that os.walk names and does not enter."""
    return (Path(folder, name) for name in folders if Path(folder, name).is_symlink())


def _link(link: Path) -> list[str | int]:
    return _stated(link.readlink())


def _stated(target: Path) -> list[str | int]:
    there = target.stat() if target.exists() else None
    return [str(target), there.st_size if there else -1, there.st_mtime_ns if there else -1]


def _compare(tree: Path, sealed: Mapping[str, object], now: Mapping[str, object]) -> None:
    for path in sorted(set(sealed) | set(now)):
        if sealed.get(path) != now.get(path):
            raise DriftError(
                f"{tree / path} is {now.get(path, 'gone')}, but was staged as {sealed.get(path, 'no such file')}; "
                f"remove {tree} to have it made again"
            )
