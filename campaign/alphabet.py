"""Our names in MLflow's alphabet and back, without two of them meeting (cases G8).

MLflow 3 takes letters, digits, `_ - . space : /`, and refuses paths that are not normal. `:` is our escape: a character
outside the alphabet is `:` its code point in hex `:`, so acc@1 is acc:40:1.
"""

import posixpath
import re

LONGEST_KEY = 250
PLAIN = re.compile(r"[A-Za-z0-9_\-./]")
ESCAPED = re.compile(r":([0-9a-f]+):")


def to_key(name: str) -> str:
    """A name as MLflow takes it; raises ValueError for one that is empty or too long."""
    is_path = not name.startswith("/") and posixpath.normpath(name) == name and name.strip(".") != ""
    kept = "/." if is_path and ".." not in name.split("/") else ""
    key = "".join(c if PLAIN.fullmatch(c) and (c not in "/." or kept) else f":{ord(c):x}:" for c in name)
    if not 0 < len(key) <= LONGEST_KEY:
        raise ValueError(f"a name of 1 to {LONGEST_KEY} characters is wanted, found {len(key)}: {name[:40]!r}")
    return key


def to_name(key: str) -> str:
    """The name behind a key."""
    return ESCAPED.sub(lambda found: chr(int(found[1], 16)), key)
