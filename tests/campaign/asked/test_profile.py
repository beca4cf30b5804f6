"""A team's .env file: read exactly as it is written, or refused with file and line."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from campaign.asked.profile import Line, parse, read
from campaign.errors import ConfigError

KEYS = st.from_regex(r"[A-Z_][A-Z0-9_]{0,12}", fullmatch=True)
VALUES = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=30)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("A=1", "1"),
        ("export A=1", "1"),
        ("  A=1  ", "1"),
        ("A=", ""),
        ("A=''", ""),
        ("A=a b", "a b"),
        ("A=a=b", "a=b"),
        ("A=1 # why", "1"),
        ("A=1#2", "1#2"),
        ("A=# why", ""),
        ('A="a # b"  # why', "a # b"),
        ("A='$HOME'", "$HOME"),
        (r'A="say \"hi\" \\ \$5"', 'say "hi" \\ $5'),
        (r"A=C:\dir", r"C:\dir"),
        ("A=한국어 서빙", "한국어 서빙"),
        ('A={"method": "dflash"}', '{"method": "dflash"}'),
        ("A=cost $5", "cost $5"),
        ("\ufeffA=1", "1"),
        ("A=1\r", "1"),
    ],
    ids=repr,
)
def test_a_line_is_read_as_it_is_written(text: str, value: str) -> None:
    assert parse(text, "team.env") == (Line("A", value, 1),)


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "\ufeff# 한국어\r\n\t\r\n"], ids=repr)
def test_comments_and_empty_lines_say_nothing(text: str) -> None:
    assert parse(text, "team.env") == ()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("A=1\nA=2", "team.env:2: A is already set on line 1, to another value; keep one"),
        ("A = 1", "team.env:1: wanted KEY=value, without spaces around '='"),
        ("A= 1", "team.env:1: found a space after '='"),
        ("\n\nhello", "team.env:3: wanted KEY=value"),
        ("1A=1", "team.env:1: wanted KEY=value"),
        ("A-B=1", "team.env:1: wanted KEY=value"),
        ("=1", "team.env:1: wanted KEY=value"),
        ("set A=1", "team.env:1: wanted KEY=value"),
        ("A='x", "team.env:1: found a quote that does not end with the value"),
        ("A='x'y", "team.env:1: found a quote that does not end with the value"),
        ('A="x', "team.env:1: found a quote that does not end"),
        ("A=$HOME/x", "team.env:1: nothing is expanded in a profile"),
        ('A="${HOME}"', "team.env:1: nothing is expanded in a profile"),
        ("A=$(date)", "team.env:1: nothing is expanded in a profile"),
        ("A=`date`", "team.env:1: nothing is expanded in a profile"),
        ("A=a\0b", "team.env:1: found a control character"),
        ("A=a\rB=b", "team.env:1: found a control character"),
        ("A=a\x0bB=b", "team.env:1: found a control character"),
    ],
    ids=repr,
)
def test_a_line_that_a_shell_would_read_otherwise_is_refused_with_its_place(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match="^" + re.escape(sentence)):
        parse(text, "team.env")


def test_a_key_set_twice_to_the_same_value_counts_once() -> None:
    assert parse("A=1\nexport A='1'\n", "team.env") == (Line("A", "1", 1),)


@pytest.mark.parametrize("text", ["MY KEY=s3cret", "s3cret", "export s3cret", "HF_TOKEN: s3cret", "s3cret=x y"])
def test_a_line_that_cannot_be_read_does_not_show_what_may_be_its_secret(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(f"A=1\n{text.replace('=x y', ' =x')}", "team.env")
    assert "s3cret" not in str(caught.value)


def test_a_file_that_is_not_utf_8_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "team.env").write_bytes("A=1\nB=한국어\n".encode("euc-kr"))
    with pytest.raises(ConfigError, match=r"team\.env:2: found bytes that are not UTF-8"):
        read(tmp_path / "team.env")


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"engine\.profile: .*/nosuch\.env cannot be read: No such file"):
        read(tmp_path / "nosuch.env")


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["a pipe", "a folder"])
def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "team.env")
    with pytest.raises(ConfigError, match=r"engine\.profile: .*/team\.env is no file"):
        read(tmp_path / "team.env")


@given(st.dictionaries(KEYS, VALUES, max_size=6), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_any_text_in_double_quotes_comes_back_as_it_was(values: dict[str, str], newline: str, bom: bool) -> None:
    quoted = {key: re.sub(r'(["\\$`])', r"\\\1", value) for key, value in values.items()}
    text = newline.join(f'export {key}="{value}" # {key}' for key, value in quoted.items())
    found = parse("\ufeff" * bom + text, "team.env")
    assert {line.key: line.value for line in found} == values


@given(st.text(max_size=80))
def test_whatever_a_file_holds_is_read_or_refused_with_its_line(text: str) -> None:
    try:
        found = parse(text, "team.env")
    except ConfigError as error:
        message = str(error)
    else:
        message = "team.env:1: "
        assert [line.number for line in found] == sorted(line.number for line in found)
        assert len({line.key for line in found}) == len(found)
    assert re.match(r"team\.env:\d+: ", message)
