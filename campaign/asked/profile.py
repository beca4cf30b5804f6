"""A team's profile: an .env file of KEY=value lines. Pure; what the keys mean is for arms to say.

Nothing is expanded, and nothing is guessed: a line that a shell would read otherwise is refused.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from campaign.errors import ConfigError

BOM = "\ufeff"
LINE = re.compile(r"(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
QUOTED = re.compile(r"""(?:"((?:[^"\\]|\\["\\$`])*)"|'([^']*)')[ \t]*(?:[ \t]#.*)?""")
COMMENT = re.compile(r"(?:^|[ \t]+)#.*")
EXPANDED = re.compile(r"\$[A-Za-z_{(]|`")
ESCAPED = re.compile(r'\\(["\\$`])')
CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")  # a tab may stand in a value


@dataclass(frozen=True)
class Line:
    """One assignment of a profile; `number` counts from 1."""

    key: str
    value: str
    number: int


def read(path: Path) -> tuple[Line, ...]:
    """The assignments of a profile file, in order. Raises ConfigError with file and line."""
    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise ConfigError(f"engine.profile: {path} is no file; wanted KEY=value lines")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"engine.profile: {path} cannot be read: {error.strerror or error}") from error
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        number = content[: error.start].count(b"\n") + 1
        raise ConfigError(f"{path.name}:{number}: found bytes that are not UTF-8; save the profile as UTF-8") from error
    return parse(text, path.name)


def parse(text: str, name: str) -> tuple[Line, ...]:
    """The assignments of a profile's text, each key once. Raises ConfigError that begins with `name:line`."""
    found: dict[str, Line] = {}
    for number, raw in enumerate(text.removeprefix(BOM).split("\n"), start=1):
        line = _line(raw.removesuffix("\r"), number, f"{name}:{number}")
        if line is None:
            continue
        before = found.setdefault(line.key, line)
        if before.value != line.value:
            raise ConfigError(
                f"{name}:{number}: {line.key} is already set on line {before.number}, to another value; keep one"
            )
    return tuple(found.values())


def _line(raw: str, number: int, where: str) -> Line | None:
    text = raw.strip(" \t")
    if not text or text.startswith("#"):
        return None
    if CONTROL.search(text):
        raise ConfigError(f"{where}: found a control character; wanted one KEY=value a line, as plain text")
    match = LINE.fullmatch(text)
    if match is None:
        raise ConfigError(f"{where}: wanted KEY=value, without spaces around '=', or a # comment")  # may be a secret
    return Line(match[1], _value(match[2], where), number)


def _value(text: str, where: str) -> str:
    """What stands after the `=`: in quotes, or bare up to a comment."""
    if text[:1] in ("'", '"'):
        return _unquoted(text, where)
    bare = COMMENT.sub("", text).rstrip(" \t")
    if bare[:1] in (" ", "\t"):
        raise ConfigError(f"{where}: found a space after '='; wanted KEY=value, or the value in quotes")
    if EXPANDED.search(bare):
        raise ConfigError(f"{where}: nothing is expanded in a profile; write the value out, or put it in single quotes")
    return bare


def _unquoted(text: str, where: str) -> str:
    match = QUOTED.fullmatch(text)
    if match is None:
        raise ConfigError(f"{where}: found a quote that does not end with the value; wanted KEY='value' on one line")
    if match[2] is not None:
        return match[2]
    if EXPANDED.search(re.sub(r"\\.", "", match[1])):
        raise ConfigError(f"{where}: nothing is expanded in a profile; write the value out, or put it in single quotes")
    return ESCAPED.sub(r"\1", match[1])
