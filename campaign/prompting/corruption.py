"""Signs that an engine broke a Korean text: each is a pattern that a healthy answer does not hold (cases H1 to H7).

Works on texts in NFC. `known` is what the prompt (or a reference) itself holds: repeating that is no corruption.
"""

import re
import unicodedata

from campaign.prompting.mojibake import mojibake
from verdict.words import number_of

HAN_RANGES = "\u2e80-\u2fdf\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
KANA_RANGES = (  # and bopomofo; without the middle dot: Korean uses it
    "\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff\uff66-\uff9f"
)
FOREIGN = re.compile(f"[{HAN_RANGES}{KANA_RANGES}]")
FOREIGN_RUN = re.compile(f"[{HAN_RANGES}{KANA_RANGES}]+")
HANGUL = re.compile("[\uac00-\ud7a3\u1100-\u11ff\u3131-\u318e]")
OTHERS = re.compile(  # letters that Korean prose does not mix in: Cyrillic, Hebrew to Khmer; Latin and Greek it does
    "[\u0400-\u052f\u0590-\u10ff\u1200-\u137f\u1780-\u17ff]"
)
BROKEN = re.compile(  # no character, a control, or one of private use
    "[\ufffd-\uffff\ud800-\udfff\x00-\x08\x0e-\x1f\x7f-\x9f\ue000-\uf8ff\U000f0000-\U0010ffff]"
)
BYTE_PIECES = re.compile(r"(?:<0x[0-9A-Fa-f]{2}>)+")
CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
OPEN_CODE = re.compile(r"```.*\Z", re.DOTALL)  # healthy only where the length limit ended the text
QUOTED_PIECES = re.compile(r"""["'“‘](?:<0x[0-9A-Fa-f]{2}>)+["'”’]""")
ASIDES = re.compile(  # brackets and quotes in which Korean explains a Han word
    r"\([^()\n]{1,60}\)|（[^（）\n]{1,60}）|\[[^\[\]\n]{1,60}\]|「[^「」\n]{1,60}」|『[^『』\n]{1,60}』|《[^《》\n]{1,60}》"
    r"|〈[^〈〉\n]{1,60}〉|“[^“”\n]{1,60}”|‘[^‘’\n]{1,60}’|\"[^\"\n]{1,60}\"|'[^'\n]{1,60}'"
)
NAN_RUN = re.compile("!{16,}")
UNIT_LOOP = re.compile(r"(.{2,60}?)\1{7,}", re.DOTALL)
LONG_LOOP = re.compile(r"(.{61,300}?)\1{4,}", re.DOTALL)  # a sentence, again and again
SIGN_LOOP = re.compile(r"(\S)\1{63,}")
TAIL_LOOP = re.compile(r"(\S)\1{31,}\s*\Z")  # where the length limit ended a text that was still at it
FEW_WORDS = 4  # fewer are a name or a term
LEAST_LOOP = 32  # characters, of a unit that says something
LEAST_SIGN_LOOP = 64  # of signs only
LONGEST_RULE = 400  # of what rules, tables and dotted leaders are drawn with
RULE_SIGNS = frozenset("-=_*~#|:+.·…─━═│┃ \t\n")
CUT_TAIL = re.compile("\ufffd{1,3}$")


def corruption(text: str, known: str, *, cut_off: bool) -> str:
    """The first sign of corruption, in a sentence; empty when there is none.

    `cut_off` says that the length limit ended the text: half a character at its end is then no corruption (house.md).
    """
    return damage(text, known, cut_off=cut_off) or _foreign(uncut(text, cut_off=cut_off), known)


def damage(text: str, known: str, *, cut_off: bool) -> str:
    """The first sign that stands for damage in a text of any language: all but foreign script; empty for none."""
    seen = uncut(text, cut_off=cut_off)
    return (
        mojibake(seen, known)
        or _broken(seen, known)
        or _byte_pieces(seen, known, cut_off=cut_off)
        or _not_a_number(seen, known)
        or _loop(seen, known, cut_off=cut_off)
    )


def uncut(text: str, *, cut_off: bool) -> str:
    """The text without the half character that the length limit left at its end."""
    return CUT_TAIL.sub("", text) if cut_off else text


def _broken(text: str, known: str) -> str:
    found = [match for match in BROKEN.finditer(text) if match.group() not in known]
    if not found:
        return ""
    at = found[0].start()
    return f"{number_of(len(found), 'broken character')}, the first U+{ord(text[at]):04X} in {_around(text, at)}"


def _byte_pieces(text: str, known: str, *, cut_off: bool) -> str:
    closed = CODE.sub("", text)
    prose = QUOTED_PIECES.sub("", OPEN_CODE.sub("", closed) if cut_off else closed)
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


def _loop(text: str, known: str, *, cut_off: bool) -> str:
    patterns = [UNIT_LOOP, LONG_LOOP, SIGN_LOOP, *([TAIL_LOOP] if cut_off else [])]
    found = next((m for pattern in patterns for m in pattern.finditer(text) if _is_loop(m)), None)
    if found is None or found.group().strip() in known:
        return ""
    return f"loop: {found.group(1)!r} {len(found.group()) // len(found.group(1))} times in a row"


def _is_loop(found: re.Match[str]) -> bool:
    """Whether a repeated unit says something again and again; a rule, a table's edge or a laugh does not."""
    unit = found.group(1)
    length = len(found.group())
    if unit.isspace():
        return False
    if set(unit) <= RULE_SIGNS:
        return length >= LONGEST_RULE
    if len(set(unit)) == 1:
        return found.re in (SIGN_LOOP, TAIL_LOOP)
    return length >= (LEAST_LOOP if any(character.isalnum() for character in unit) else LEAST_SIGN_LOOP)


def _foreign(text: str, known: str) -> str:
    """Han and kana that neither the prompt holds nor an aside explains, or more of them than Hangul."""
    bare = _foreign_in(ASIDES.sub(" ", text), known)
    everywhere, hangul = _foreign_in(text, known), len(HANGUL.findall(text))
    if not bare and len(everywhere) <= hangul:
        return _other_script(ASIDES.sub(" ", text), known)
    run = next(m.group() for m in FOREIGN_RUN.finditer(text) if _foreign_in(m.group(), known))
    where = "outside brackets and quotes" if bare else "in brackets and quotes"
    return f"{len(bare or everywhere)} Han or kana {where} against {hangul} Hangul, the first {run[:20]!r}"


def _other_script(bare: str, known: str) -> str:
    """Letters of a third script, outside of asides; Korean explains those in brackets and quotes too."""
    found = [character for character in OTHERS.findall(bare) if character not in known]
    if not found:
        return ""
    script = unicodedata.name(found[0], "UNKNOWN").split(" ")[0].capitalize()
    return f"{len(found)} letters of another script outside brackets and quotes, the first {found[0]!r} ({script})"


def without_hangul(text: str, said: str) -> str:
    """A remark on an answer that is prose without any Hangul, to a Korean prompt; empty for numbers, names and code.

    No failure: a prompt may ask for a translation.
    """
    prose = OPEN_CODE.sub("", CODE.sub("", text))
    words = re.findall(r"[^\W\d_]{2,}", prose)
    asked_in_korean = HANGUL.search(said) is not None
    return "it holds no Hangul" if asked_in_korean and len(words) >= FEW_WORDS and not HANGUL.search(text) else ""


def counted_scripts(text: str, known: str) -> tuple[int, int]:
    """Han and kana that neither the prompt holds nor an aside explains, and Hangul, in characters (case H4)."""
    return len(_foreign_in(ASIDES.sub(" ", text), known)), len(HANGUL.findall(text))


def _foreign_in(text: str, known: str) -> list[str]:
    return [character for character in FOREIGN.findall(text) if character not in known]


def _around(text: str, at: int) -> str:
    return repr(text[max(0, at - 8) : at + 9])
