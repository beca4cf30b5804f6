"""Signs that an engine broke a Korean text: each is a pattern that a healthy answer does not hold (cases H1 to H7).

Works on texts in NFC. `known` is what the prompt (or a reference) itself holds: repeating that is no corruption.
"""

import re

HAN_RANGES = "\u3005\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
KANA_RANGES = (
    "\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # without the middle dot: Korean uses it
)
FOREIGN = re.compile(f"[{HAN_RANGES}{KANA_RANGES}]")
FOREIGN_RUN = re.compile(f"[{HAN_RANGES}{KANA_RANGES}]+")
HANGUL = re.compile("[\uac00-\ud7a3\u1100-\u11ff\u3131-\u318e]")
BROKEN = re.compile("[\ufffd\ud800-\udfff\x00-\x08]")
BYTE_PIECES = re.compile(r"(?:<0x[0-9A-Fa-f]{2}>)+")
CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
QUOTED_PIECES = re.compile(r"""["'“‘](?:<0x[0-9A-Fa-f]{2}>)+["'”’]""")
ASIDES = re.compile(  # brackets and quotes in which Korean explains a Han word
    r"\([^()\n]{1,60}\)|（[^（）\n]{1,60}）|\[[^\[\]\n]{1,60}\]|「[^「」\n]{1,60}」|『[^『』\n]{1,60}』|《[^《》\n]{1,60}》"
    r"|〈[^〈〉\n]{1,60}〉|“[^“”\n]{1,60}”|‘[^‘’\n]{1,60}’|\"[^\"\n]{1,60}\"|'[^'\n]{1,60}'"
)
NAN_RUN = re.compile("!{16,}")
UNIT_LOOP = re.compile(r"(.{2,60}?)\1{7,}", re.DOTALL)
SIGN_LOOP = re.compile(r"(\w)\1{99,}")
LEAST_LOOP = 32  # characters
CUT_TAIL = re.compile("\ufffd{1,3}$")


def corruption(text: str, known: str, *, cut_off: bool) -> str:
    """The first sign of corruption, in a sentence; empty when there is none.

    `cut_off` says that the length limit ended the text: half a character at its end is then no corruption (house.md).
    """
    return damage(text, known, cut_off=cut_off) or _foreign(uncut(text, cut_off=cut_off), known)


def damage(text: str, known: str, *, cut_off: bool) -> str:
    """The first sign that stands for damage in a text of any language: all but foreign script; empty for none."""
    seen = uncut(text, cut_off=cut_off)
    return _broken(seen, known) or _byte_pieces(seen, known) or _not_a_number(seen, known) or _loop(seen, known)


def uncut(text: str, *, cut_off: bool) -> str:
    """The text without the half character that the length limit left at its end."""
    return CUT_TAIL.sub("", text) if cut_off else text


def _broken(text: str, known: str) -> str:
    found = [match for match in BROKEN.finditer(text) if match.group() not in known]
    if not found:
        return ""
    at = found[0].start()
    return f"{len(found)} broken characters, the first U+{ord(text[at]):04X} in {_around(text, at)}"


def _byte_pieces(text: str, known: str) -> str:
    prose = QUOTED_PIECES.sub("", CODE.sub("", text))
    found = next((match.group() for match in BYTE_PIECES.finditer(prose) if match.group() not in known), None)
    if found is None:
        return ""
    meant = bytes.fromhex("".join(re.findall(r"0x(..)", found))).decode("utf-8", "replace")
    return f"byte pieces printed as text: {found} (meant {meant!r})"


def _not_a_number(text: str, known: str) -> str:
    found = NAN_RUN.search(text)
    if found is None or found.group() in known:
        return ""
    return f"suspected NaN: {len(found.group())} times '!' from character {found.start()}"


def _loop(text: str, known: str) -> str:
    found = next((m for m in UNIT_LOOP.finditer(text) if _is_loop(m)), None) or SIGN_LOOP.search(text)
    if found is None or found.group().strip() in known:
        return ""
    return f"loop: {found.group(1)!r} {len(found.group()) // len(found.group(1))} times in a row"


def _is_loop(found: re.Match[str]) -> bool:
    """Whether a repeated unit says something again and again; a rule, a table's edge or a laugh does not."""
    unit = found.group(1)
    has_words = any(character.isalnum() for character in unit) and len(set(unit)) > 1
    return has_words and len(found.group()) >= LEAST_LOOP


def _foreign(text: str, known: str) -> str:
    """Han and kana that neither the prompt holds nor an aside explains, or more of them than Hangul."""
    bare = _foreign_in(ASIDES.sub(" ", text), known)
    everywhere, hangul = _foreign_in(text, known), len(HANGUL.findall(text))
    if not bare and len(everywhere) <= hangul:
        return ""
    run = next(m.group() for m in FOREIGN_RUN.finditer(text) if _foreign_in(m.group(), known))
    where = "outside brackets and quotes" if bare else "in brackets and quotes"
    return f"{len(bare or everywhere)} Han or kana {where} against {hangul} Hangul, the first {run[:20]!r}"


def counted_scripts(text: str, known: str) -> tuple[int, int]:
    """Han and kana that neither the prompt holds nor an aside explains, and Hangul, in characters (case H4)."""
    return len(_foreign_in(ASIDES.sub(" ", text), known)), len(HANGUL.findall(text))


def _foreign_in(text: str, known: str) -> list[str]:
    return [character for character in FOREIGN.findall(text) if character not in known]


def _around(text: str, at: int) -> str:
    return repr(text[max(0, at - 8) : at + 9])
