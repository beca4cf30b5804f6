"""What a rebase leaves for a person: new patches, a piece of manifest not reviewed yet, and a page that explains."""

import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from overlays.errors import OverlayError
from overlays.merge import Carried, Fate, diff
from overlays.rebase import FileCarried, Rebased

PAGE, FRAGMENT = "REVIEW.md", "manifest-fragment.toml"


def leave(rebased: Rebased, folder: Path) -> None:
    """Write it all aside and rename it to `folder`. Raises OverlayError where the folder is there: it may be edited."""
    if folder.exists():
        raise OverlayError(f"{folder} is there already, perhaps with your edits; remove it or name another with --out")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".rebasing-", dir=folder.parent) as aside:
        made = Path(aside, folder.name)
        for path, content in _files(rebased):
            (made / path).parent.mkdir(parents=True, exist_ok=True)
            (made / path).write_bytes(content)
        made.rename(folder)


def format_lines(rebased: Rebased) -> list[str]:
    """One line a file and one a hunk, for the terminal and the page."""
    lines = []
    for file in rebased.files:
        lines.append(f"{file.file.path}: {file.fate.value}{f' ({file.note})' if file.note else ''}")
        lines += [f"  {_hunk(number, hunk)}" for number, hunk in enumerate(file.hunks, start=1)]
    return lines


def _files(rebased: Rebased) -> Iterator[tuple[str, bytes]]:
    yield PAGE, _page(rebased).encode()
    yield FRAGMENT, _fragment(rebased).encode()
    for file in rebased.files:
        if file.file.added and file.fate is Fate.clean:
            yield _home(rebased, file), file.after or b""
        elif file.file.patch and file.after is not None and file.after != file.found:
            place = _home(rebased, file) if file.fate.carried else f"unsettled/{file.file.patch.name}"
            yield place, diff(_text(file.found), _text(file.after), file.file.path).encode()
        elif file.found is not None and not file.fate.settled and not file.file.added:
            yield f"watched/{file.file.path.replace('/', '-')}.diff", _difference(file).encode()


def _page(rebased: Rebased) -> str:
    old, new = rebased.old, rebased.new
    head = [
        f"# {rebased.overlay.name}: vLLM {old.version} ({old.build}) to {new.version} ({new.build})",
        "",
        "Merged by a machine, for you to review; the overlay itself was not touched. A clean hunk stands where its",
        "lines have moved to: whether it still means the same there is the question. One to look at is carried too,",
        "but what it stands beside, or in, has changed: read both texts.",
        "",
        _summary(rebased),
        "",
        *[f"- {line}" if not line.startswith("  ") else f"  - {line.strip()}" for line in format_lines(rebased)],
    ]
    texts = [line for file in rebased.files for line in _texts(file)]
    return "\n".join([*head, *(["", "## Both texts", *texts] if texts else []), "", *_next(rebased), ""])


def _summary(rebased: Rebased) -> str:
    hunks = [hunk for file in rebased.files for hunk in file.hunks]
    left = [hunk for hunk in hunks if not hunk.fate.settled]
    already = [hunk for hunk in hunks if hunk.fate is Fate.already]
    if not rebased.settled:
        files = sum(not file.fate.settled for file in rebased.files)
        look = sum(hunk.fate is Fate.look for hunk in left)
        return (
            f"Not settled: {files} of {len(rebased.files)} files. Of {len(hunks)} hunks {len(left) - look} no longer "
            f"apply, {look} are to look at."
        )
    if all(file.fate is Fate.already for file in rebased.files):
        return "Nothing is left to carry: this engine has all of it. Drop the overlay."
    carried = len(hunks) - len(already)
    return f"Settled: {carried} of {len(hunks)} hunks carried over, {len(already)} already in this engine."


def _texts(file: FileCarried) -> Iterator[str]:
    """Ours and the engine's, where they met."""
    for number, hunk in enumerate(file.hunks, start=1):
        if hunk.ours or hunk.theirs:
            yield from ("", f"### {file.file.path}, {_hunk(number, hunk)}", "", "Ours:", "")
            yield from _quoted(hunk.ours)
            yield from ("", "The engine's:", "")
            yield from _quoted(hunk.theirs)


def _quoted(text: tuple[str, ...]) -> Iterator[str]:
    yield "~~~~"
    yield from (line.rstrip("\n") for line in text)
    yield "~~~~"


def _hunk(number: int, hunk: Carried) -> str:
    where = f"hunk {number}, line {hunk.change.start + 1}"
    if hunk.fate is Fate.already:
        return f"{where}: {hunk.fate.value}{f' ({hunk.why})' if hunk.why else ''}"
    moved = f", now line {hunk.to + 1}" if hunk.fate is not Fate.gone else ""
    return f"{where}: {hunk.fate.value}{f' ({hunk.why})' if hunk.why else ''}{moved}"


def _fragment(rebased: Rebased) -> str:
    missing = sum(not (file.fate.settled or file.fate.carried) for file in rebased.files)
    lines = [
        *([f"# Incomplete: {missing} files are not settled and have no row here; see {PAGE}."] if missing else []),
        "[[target]]",
        f'version = "{rebased.new.version}"',
        f'builds = ["{rebased.new.build}"]',
        "reviewed = false  # a target that nobody has reviewed is not staged; take this line out when you have",
    ]
    for file in rebased.files:
        lines += _row(rebased, file)
    return "\n".join([*lines, ""])


def _row(rebased: Rebased, file: FileCarried) -> list[str]:
    if not file.fate.carried or file.after is None:
        return []
    how = {"patch": file.file.patch, "added": file.file.added}
    look = ["# A hunk of it is to look at; see " + PAGE + "."] if file.fate is Fate.look else []
    lines = ["", *look, "[[target.file]]", f'path = "{file.file.path}"']
    lines += [f'{key} = "{_home(rebased, file)}"' for key, path in how.items() if path]
    if file.found is not None:
        lines.append(f'preimage_sha256 = "{sha256(file.found).hexdigest()}"')
    return [*lines, f'postimage_sha256 = "{sha256(file.after).hexdigest()}"']


def _home(rebased: Rebased, file: FileCarried) -> str:
    """Where the new file lies in the overlay's folder: where the old one does, in the new version's folder."""
    source = file.file.patch or file.file.added
    assert source is not None
    parts = source.relative_to(rebased.overlay.folder).parts
    below = parts[1:] if parts[0] == rebased.old.version else parts
    return str(Path(rebased.new.version, *below))


def _next(rebased: Rebased) -> list[str]:
    name, version = rebased.overlay.name, rebased.new.version
    return [
        "## When you have reviewed it",
        "",
        "1. Read each patch beside the engine's file. Settle what is not settled (edit a copy of the engine's file; "
        "`diff -U0`, see overlays/README.md)."
        if not rebased.settled
        else "1. Read each patch beside the engine's file.",
        f"2. Copy `{version}/` into the overlay's folder and append `{FRAGMENT}` to its `manifest.toml`.",
        f"3. Take `reviewed = false` out; `python -m overlays verify --import {name} --python P` (that engine's P).",
        "4. A build that carries the same sources may be added to `builds`; compare the wheels first.",
    ]


def _difference(file: FileCarried) -> str:
    """What the engine changed in a file; of one that is no text only the hashes."""
    try:
        return diff(_text(file.was), _text(file.found), file.file.path)
    except UnicodeDecodeError:
        was, found = (sha256(content or b"").hexdigest() for content in (file.was, file.found))
        return f"{file.file.path} is no text in UTF-8: {was} before, {found} now\n"


def _text(content: bytes | None) -> str:
    return (content or b"").decode("utf-8")
