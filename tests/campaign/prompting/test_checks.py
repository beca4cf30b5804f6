"""Twin of campaign.prompting: checks, literals, schemas and corruption."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from campaign.prompting.checks import CHECKS, Check, Prompt, check_answer
from campaign.prompting.corruption import corruption

HANGUL = st.text(st.characters(min_codepoint=0xAC00, max_codepoint=0xD7A3), min_size=1, max_size=30)
SENTENCE = "오늘 서울의 날씨는 대체로 맑고 기온은 평년보다 조금 높겠으며 오후에는 남쪽에서 구름이 들어와 차차 흐립니다."

ORDER = {
    "type": "object",
    "required": ["item", "count"],
    "properties": {"item": {"type": "string"}, "count": {"$ref": "#/$defs/whole"}},
    "$defs": {"whole": {"type": "integer", "minimum": 1}},
}


def prompt(kind, value=None, said="무엇입니까?", tolerance=0.0):
    return Prompt("p1", "quality", None, said, 64, Check(kind, value, tolerance))


def check(kind, value, text, finish_reason="stop", said="무엇입니까?", tolerance=0.0):
    return check_answer(prompt(kind, value, said, tolerance), text, finish_reason)


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("exact", "1, 3, 4", " 1, 3, 4\n"),
        ("contains", "Oslo", "It is Oslo, by train."),
        ("contains", ["Oslo", "train"], "It is Oslo, by train."),
        ("regex", r"\b4[0-9]\b", "about 42 boxes"),
        ("numeric", "42", "17 and 25 make 42."),
        ("numeric", 3000, "모두 3,000원입니다."),
        ("numeric", 42, "답은42입니다"),
        *(("numeric", 42, f"넓이는 42{unit}입니다.") for unit in ("㎡", " m²", "m³", " m2", "km^2", "㎢")),
        ("numeric", -5, "답은 \u22125입니다."),
        ("numeric", -5, "답은\u22125입니다."),
        ("numeric", 5, "10\u22125"),
        ("numeric", 42, "답: ４２"),
        ("numeric", -5, "It is -5"),
        ("numeric", 25, "17-25"),
        ("json", {"item": "bike", "price": 120}, 'Here:\n```json\n{"price": 120.0, "item": "bike"}\n```'),
        ("json", [1, 2], "[1, 2]"),
        ("json", {"a": 1}, '{broken {"a": 1}'),
        ("json_schema", ORDER, '```json\n{"item": "북", "count": 2}\n```'),
        ("json_schema", {"type": "integer"}, " 42 "),
        ("python_literal", "{'a': (1, 2)}", "Here:\n```python\n{'a': (1, 2.0)}\n```"),
        ("python_literal", "[1, 'b']", "It is [1, 'b'], of course (really)."),
        ("python_literal", "{1, 2}", "the set is {2, 1}"),
        ("python_literal", "'가'", "'가'"),
        ("korean", None, "안녕하세요. ㅋㅋㅋ ① 50％ 가격·기간"),
    ],
)
def test_right_answers_are_right(kind, value, text):
    assert check(kind, value, text) == (True, "")


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("exact", "1, 3, 4", "1, 3, 5"),
        ("contains", ["Oslo", "train"], "It is Oslo."),
        ("regex", r"^\d+$", "about 42"),
        ("numeric", 42, "41"),
        ("numeric", 42, "42 or 43"),
        ("numeric", 42, "many"),
        ("numeric", 2, "면적은 7㎡입니다."),
        ("numeric", 5, "답은 \u22125입니다."),
        ("json", {"a": True}, '{"a": 1}'),
        ("json", {"a": 1}, '{"a": 1, "b": 2}'),
        ("json", {"a": 1}, "[[[["),
        ("json", {"a": 1}, "[" * 5000),
        ("json_schema", ORDER, '{"item": "drum"}'),
        ("json_schema", ORDER, '{"item": "drum", "count": 0}'),
        ("json_schema", ORDER, "no drum"),
        ("json_schema", ORDER, "[" * 5000),
        ("python_literal", "[1, 2]", "(1, 2)"),
        ("python_literal", "[1, True]", "[1, 1]"),
        ("python_literal", "[1]", "[1, 2]"),
        ("python_literal", "[1]", "__import__('os')"),
        ("python_literal", "[1]", "[" * 3000 + "]" * 3000),
    ],
)
def test_wrong_answers_are_wrong_and_say_wanted_and_got(kind, value, text):
    ok, why = check(kind, value, text)
    assert ok is False
    assert why.startswith("wanted ")
    assert ", got " in why


def test_a_wrong_korean_answer_is_shown_in_korean():
    assert check("exact", "서울", "부산") == (False, "wanted '서울', got '부산' (stop)")


@pytest.mark.parametrize(
    ("text", "ok"), [("3.14", True), ("3.15", True), ("3.1501", False), ("-3.14", False)], ids=lambda found: str(found)
)
def test_a_number_may_differ_by_its_tolerance(text, ok):
    assert check("numeric", 3.14, text, tolerance=0.01)[0] is ok


def test_a_schema_is_compared_in_nfc_too():
    cities = {"required": ["도시"], "properties": {"도시": {"enum": ["서울"]}}}
    assert check("json_schema", cities, unicodedata.normalize("NFD", '{"도시": "서울"}'))[0] is True
    assert check("json_schema", cities, '{"도시": "부산"}')[0] is False


def test_a_schema_says_where_it_is_not_met():
    _, why = check("json_schema", ORDER, '{"item": "drum", "count": 0}')
    assert "$.count: 0 is less than the minimum of 1" in why


def test_no_checker_gives_no_opinion():
    assert check_answer(Prompt("d1", "decode", None, "Log of", 256), "the sea", "length") == (None, "")


@pytest.mark.case("H12")
def test_the_content_decides_and_not_the_finish_reason():
    assert check("numeric", 42, "17 + 25 = 42", "length")[0] is True
    assert check("numeric", 42, "I would rather not say", "stop")[0] is False


@pytest.mark.case("H8")
@pytest.mark.parametrize("text", ["", " \n", "\ufffd"], ids=["empty", "blank", "half a character"])
def test_nothing_at_the_token_limit_is_a_budget_and_no_wrong_answer(text):
    ok, why = check("exact", "42", text, "length")
    assert ok is None
    assert why.startswith("budget")


def test_nothing_by_its_own_will_is_a_wrong_answer():
    assert check("korean", None, "", "stop") == (False, "empty answer (stop)")


@pytest.mark.case("H5")
def test_decomposed_hangul_is_equal_and_reported_as_a_change():
    composed, decomposed = "한국어 서빙", unicodedata.normalize("NFD", "한국어 서빙")
    assert (len(composed), len(decomposed)) == (6, 14)
    ok, why = check("exact", composed, decomposed)
    assert ok is True
    assert "decomposed" in why
    assert check("exact", decomposed, composed) == (True, "")
    assert check("korean", None, decomposed)[0] is True


@given(HANGUL)
def test_scores_do_not_depend_on_the_normal_form(text):
    for form in ("NFC", "NFD"):
        found = unicodedata.normalize(form, text)
        assert check("exact", text, found)[0] is True
        assert check("contains", found, text)[0] is True


@given(st.sampled_from(sorted(CHECKS)), st.text(max_size=200), st.sampled_from(["stop", "length"]))
def test_no_text_whatever_breaks_a_checker(kind, text, finish_reason):
    values = {"numeric": 1, "json": {"a": 1}, "json_schema": ORDER, "python_literal": "[1]"}
    value = values.get(kind, "a")
    ok, why = check(kind, value, text, finish_reason)
    assert ok in (True, False, None)
    assert ok is True or why


@given(HANGUL, st.integers(min_value=0, max_value=30))
def test_a_foreign_sign_anywhere_in_korean_prose_is_corruption(text, place):
    for sign in ("\ufffd", "分", "の", "<0xEA>"):
        assert corruption(text[:place] + sign + text[place:] + "니다", "", cut_off=False)


@pytest.mark.case("H1", "H2", "H3", "H4", "H6", "H7")
@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("깊은 생각에 �겼다", "U+FFFD in '깊은 생각에 �겼다'"),
        ("안녕\ud83d하세요", "U+D83D"),
        ("안녕\x00하세요", "U+0000"),
        ("잠 <0xEA><0xB9><0xB0> 수 있는 영상", "(meant '깰')"),
        ("该公司位于韩国首尔特别市瑞草区", "15 Han or kana outside brackets and quotes against 0 Hangul"),
        ("분析 결과", "the first '析'"),
        ("이것は 좋습니다", "the first 'は'"),
        ("그는 時々 온다", "時々"),
        ("\uf900 글자", "the first '豈'"),
        ("(该公司位于韩国首尔)", "in brackets and quotes"),
        ("You" + 100 * "!", "suspected NaN: 100 times '!' from character 3"),
        ("think " * 40, "loop: 'think ' 40 times in a row"),
        ("그리고 우리는 " * 12, "loop: '그리고 우리는 ' 12 times in a row"),
        ("ㅋ" * 200, "loop: 'ㅋ' 200 times"),
        ("가" * 90, "loop: '가' 90 times"),
        ("안녕 " + '"' * 400, "400 times in a row"),
        ("안녕 " + "." * 3000, "1500 times in a row"),
        ("안녕 " + "！" * 800, "800 times in a row"),
        ("You " + "? " * 200, "loop: ' ?' 200 times"),
        (20 * f"{SENTENCE} ", "20 times in a row"),
        ("안녕하세요".encode().decode("latin-1"), "meant '안녕하세요'"),
        ("안녕하세요".encode().decode("cp1252"), "meant '안녕하세요'"),
        ("ìķĪëħķíķĺìĦ¸ìļĶĠë°ĺê°ĳìĬµëĭĪëĭ¤", "meant '안녕하세요 반갑습니다'"),
        ("▁안녕▁하세▁요▁반갑▁습니다", "5 times '▁' before a word"),
        ("It's ĠfineĠinĠSeoul", "3 times 'Ġ' before a word"),
        ("서울 날씨 ภาษาไทย 좋습니다", "(Thai)"),
        (
            "서울 날씨는 сегодня хорошая 입니다",
            "14 letters of another script outside brackets",
        ),
        ("분⽊ 결과", "the first '⽊'"),
        ("분⺟ 결과", "the first '⺟'"),
        ("이〇", "the first '〇'"),
        ("서울 ㄅㄆㄇ", "the first 'ㄅㄆㄇ'"),
        ("안녕\ue000하세요", "U+E000"),
        ("안녕\x85하세요", "U+0085"),
        ("안녕\x1b하세요", "U+001B"),
        ("```\n잠 <0xEA><0xB9><0xB0> 수", "(meant '깰')"),
    ],
)
def test_corruption_is_found_and_named(text, sign):
    ok, why = check("korean", None, text)
    assert ok is False
    assert sign in why


@pytest.mark.case("H3", "H4")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("한자 '漢字'의 뜻", ""),
        ("업무(業務)를 봅니다", ""),
        ("사서 『三國志』를 읽었습니다", ""),
        ("漢字는 글자입니다", "漢字가 무엇입니까?"),
        ("그 표시는 \ufffd 입니다", "\ufffd 표시는 무엇입니까?"),
        ("바이트는 `<0xEA>`로 적습니다", ""),
        ("바이트는 '<0xEA>'로 적습니다", ""),
        ("```\n<0xEA><0xB9>\n```", ""),
        ("와!!! 정말요?!", ""),
        ("ㅋㅋㅋㅋㅋㅋㅋㅋㅋㅋ", ""),
        ("| --- | --- | --- | --- | --- | --- | --- | --- | --- |", ""),
        ("네, 네, 네, 알겠습니다.", ""),
        ("제목\n" + "=" * 80 + "\n" + "- " * 40, ""),
        ("| 이름 | 값 |\n" + "|  |  |\n" * 20, ""),
        ("1장 서론 " + "." * 120 + " 3", ""),
        ("러시아어로 'спасибо'라고 합니다", ""),
        ("спасибо는 고맙다는 말입니다", "спасибо가 무엇입니까?"),
        ("μ와 α는 그리스 문자, naïve café Ærøskøbing은 라틴 문자입니다 ▁▂▃▅▆▇", ""),
        ("정답은 (Seoul) 42㎡, 20℃, ½ 입니다", ""),
    ],
)
def test_what_only_looks_like_corruption_passes(text, said):
    assert check("korean", None, text, said=said) == (True, "")


def test_a_reference_text_may_hold_what_the_answer_holds():
    assert check("korean", "東京에 갑니다.", "東京에 갑니다.") == (True, "")


def test_a_character_cut_by_the_length_limit_is_no_corruption():
    assert check("korean", None, "오늘 서울의 날\ufffd", "length") == (True, "")
    assert check("korean", None, "오늘 서울의 날\ufffd", "stop")[0] is False
    assert check("korean", None, "오늘 \ufffd울의 날", "length")[0] is False


def test_bytes_in_a_code_block_that_the_length_limit_left_open_are_no_corruption():
    assert check("korean", None, "```\n<0xEA><0xB9><0xB0>", "length") == (True, "")


def test_a_sign_that_fills_the_end_at_the_length_limit_is_a_loop():
    assert check("korean", None, "안녕 " + "0" * 40, "length")[0] is False
    assert check("korean", None, "안녕 " + "0" * 40) == (True, "")


def test_prose_without_hangul_to_a_korean_prompt_is_told_and_short_terms_and_code_are_not():
    remark = (True, "right, but it holds no Hangul")
    assert check("korean", None, "The weather in Seoul is fine today.") == remark
    for text in ("42", "New York City", "```python\nfor item in items: print(item)\n```"):
        assert check("korean", None, text) == (True, "")
    assert check("korean", None, "The weather in Seoul is fine today.", said="How is it?") == (True, "")


@given(HANGUL, st.sampled_from(["latin-1", "cp1252"]))
def test_hangul_read_by_a_western_alphabet_is_never_clean(text, codec):
    assert corruption(text.encode().decode(codec, "replace"), "", cut_off=False)


def test_damage_stands_beside_what_any_checker_says():
    assert check("exact", "42", "You" + 100 * "!")[1].endswith("suspected NaN: 100 times '!' from character 3")
    assert check("numeric", 42, "think " * 40)[1].endswith("loop: 'think ' 40 times in a row")
    assert check("contains", "42", "42 \ufffd\ufffd") == (
        True,
        "right, but 2 broken characters, the first U+FFFD in '42 ��'",
    )
