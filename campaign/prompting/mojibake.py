"""Text whose bytes were read by the wrong alphabet: as Latin-1 or cp1252, or as a byte-level tokenizer spells them.

Works on texts in NFC, of any language; `known` is what the prompt (or a reference) itself holds (cases H1, H6).
"""

import re

UPPER = range(0x80, 0x100)


def _byte_level() -> dict[str, int]:
    """How byte-level tokenizers spell bytes: printable ones as themselves, the others in their order from U+0100."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = (byte for byte in range(256) if byte not in printable)
    return {chr(byte): byte for byte in printable} | {chr(0x100 + n): byte for n, byte in enumerate(others)}


def _western() -> dict[str, int]:
    """Latin-1, and cp1252 where it differs."""
    windows = {bytes([byte]).decode("cp1252", "ignore"): byte for byte in UPPER}
    return {chr(byte): byte for byte in UPPER} | {sign: byte for sign, byte in windows.items() if sign}


BYTE_LEVEL, WESTERN = _byte_level(), _western()
SPACE = chr(0x120)  # how byte-level tokenizers spell the space
NEWLINE = chr(0x10A)
ALPHABETS = tuple(
    (alphabet, re.compile(f"[{re.escape(''.join(sign for sign in alphabet if not sign.isascii()))}]{{3,}}"))
    for alphabet in (WESTERN, BYTE_LEVEL)
)
EAST_ASIAN = re.compile("[\u3041-\u30ff\u3131-\u318e\u3400-\u9fff\uac00-\ud7a3]")
WORD_PIECES = re.compile(f"[{SPACE}{NEWLINE}\u2581](?=\\w)")
FEW_PIECES = 3  # fewer are a letter of Maltese or Polish, or a drawn bar


def mojibake(text: str, known: str) -> str:
    """What a text was meant to say, in a sentence; empty where it is none."""
    for alphabet, runs in ALPHABETS:
        for found in runs.findall(text):
            meant = bytes(alphabet[sign] for sign in found).decode("utf-8", "replace")
            if EAST_ASIAN.search(meant) and found not in known:
                return f"mojibake: {found[:20]!r}, meant {meant[:20]!r}"
    pieces = WORD_PIECES.findall(text)
    if len(pieces) < FEW_PIECES or pieces[0] in known:
        return ""
    return f"a tokenizer's pieces printed as text: {len(pieces)} times {pieces[0]!r} before a word"
