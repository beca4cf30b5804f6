"""Twin of campaign.told.report, report_tables, view and disclosure: the page as a reader gets it."""

import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import pytest

from campaign.disclosure import shown
from campaign.gates import Gates
from campaign.gates.acceptance import Acceptance
from campaign.gates.korean import Korean
from campaign.gates.kv import Kv
from campaign.gates.outputs import Outputs
from campaign.gates.quality import Quality
from campaign.gates.step_rate import StepRate
from campaign.planning.plan import make
from campaign.told.report import make_page, write
from campaign.told.view import Page, Panels, clean, to_markdown
from tests.fakes.campaign import campaign, run_folder
from tests.fakes.evidence import STEADY, acceptance, answer, bracket, died, step_rate, whole, wrong
from verdict.words import Verdict

GATES = Gates(Kv(), Quality("q.jsonl"), Korean("k.jsonl"), Outputs(), Acceptance(), StepRate())


def judged(evidence):
    return tuple(gate.check(evidence) for gate in GATES.switched_on().values())


def page_of(evidence, *results):
    return make_page("run-1", campaign(), evidence, results, Verdict.PASS, {})


def report(tmp_path, evidence, verdict=Verdict.PASS, arms=None, **fields):
    folder = run_folder(tmp_path)
    write(folder, campaign(**fields), evidence, judged(evidence), verdict, arms or {})
    return (folder / "report.md").read_text(), (folder / "report.html").read_text()


class Reader(HTMLParser):
    """Collects tags, attributes and text, and that every tag is closed in its order."""

    VOID_TAGS = ("meta", "br", "path", "use")

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.links, self.text = [], [], [], []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href", "xlink:href", "action")]
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in ("meta",):
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_the_page_holds_verdict_gates_plots_boots_and_witness(tmp_path):
    markdown, html = report(tmp_path, whole())
    assert markdown.startswith("# PASS: exp8")
    for title in ("Gates", "Bracket of step_rate", "Acceptance by position", "Boots", "Witness of 01-A", "Facts"):
        assert f"## {title}" in markdown
    text = " ".join(Reader(html).text)
    assert "step/s · +8." in text
    assert "9/9 correct · shows >= 71.7 % (95 %)" in text


def test_the_html_needs_nothing_from_elsewhere(tmp_path):
    _, html = report(tmp_path, whole())
    reader = Reader(html)
    assert all(link.startswith("#") for link in reader.links)
    assert not {"script", "img", "link", "iframe"} & set(reader.tags)
    assert "default-src 'none'" in html
    assert 'name="viewport"' in html


def test_each_judged_claim_has_its_two_panels(tmp_path):
    _, html = report(tmp_path, whole())
    assert html.count("<svg ") == 4
    for part in html.split("<svg ")[1:]:
        ET.fromstring("<svg " + part.split("</svg>")[0] + "</svg>")
    assert "base (A)" in html
    assert "gate or margin" in html
    assert "effect with 95 % interval" in html


def test_the_small_print_names_sd_resolution_looks_voids_and_host(tmp_path):
    _, html = report(tmp_path, whole())
    for piece in (
        "boot sd 0.",
        "could have seen +-",
        "looks: fixed",
        "voided boots: 0",
        "host local",
        "no history yet",
    ):
        assert piece in html


def test_a_claim_that_an_earlier_look_decided_is_drawn_with_the_boots_of_that_look():
    """Later boots need not have its reading; their voids are none of its own."""
    rates = [*STEADY, 100.0, 109.0, 108.5, 100.2]
    evidence = whole("ABBABAABABBA", rates, claims=(step_rate(),))
    eight = replace(evidence, boots=evidence.boots[:8], letters=evidence.letters[:8])
    held = replace(StepRate().check(eight), look=1)
    boots = tuple(replace(b, metrics={}) if b.index == 12 else b for b in evidence.boots)
    spoiled = replace(boots[9], status="void", reason="a foreign process")
    later = replace(evidence, boots=(*boots[:9], spoiled, *boots[9:]))
    (section,) = [s for s in page_of(later, held).sections if isinstance(s, Panels)]
    assert "voided boots: 0" in section.captions


def test_the_same_evidence_gives_the_same_page(tmp_path):
    assert report(tmp_path / "a", whole()) == report(tmp_path / "b", whole())


def test_tokens_a_second_stand_beside_their_acceptance_length(tmp_path):
    markdown, _ = report(tmp_path, whole())
    assert "347.6 at 3.476" in markdown


def test_every_position_of_acceptance_is_there_with_counts(tmp_path):
    markdown, _ = report(tmp_path, whole())
    assert "| pos5 | 26.0 % (1040/4000) | 73.2 % (1040/1420) |" in markdown


def test_a_dead_engine_shows_its_log_and_no_effect(tmp_path):
    evidence = whole(at={5: died()})
    markdown, html = report(tmp_path, evidence, Verdict.FAIL)
    assert "boot 05-B (candidate) failed: engine died: SIGKILL (-9)" in html
    assert "EngineCore died" in html
    assert "<svg" not in html
    assert "Acceptance by position" not in markdown
    assert "8.7 %" not in markdown


def test_an_invalid_experiment_shows_no_number_at_all(tmp_path):
    evidence = whole()
    markdown, html = report(tmp_path, evidence, Verdict.INVALID)
    assert "<svg" not in html
    assert "tok/s" not in markdown
    assert "108.9" not in markdown
    assert "9/9" not in markdown
    assert markdown.count("no number: what was asked was not what was measured") == 6


def test_an_invalid_boot_hides_the_readings_whatever_the_verdict_says(tmp_path):
    evidence = whole(at={2: {"status": "invalid", "reason": "async scheduling is off"}})
    _, html = report(tmp_path, evidence, Verdict.FAIL)
    assert "async scheduling is off" in html
    assert "100.3" not in html


def test_the_gate_that_found_it_invalid_keeps_its_line():
    longer = {"answers": (answer("q1", prompt_tokens=51),)}
    evidence = bracket("ABBA", base={"answers": (answer("q1"),)}, candidate=longer)
    told = shown(judged(evidence), Verdict.INVALID, evidence)
    assert "another chat template" in next(result.line for result in told if result.gate == "outputs")


def test_every_speed_on_the_page_of_a_logic_only_engine_carries_that_label(tmp_path):
    label = "logic only (Triton's interpreter)"
    engine = replace(campaign().engine, logic_only="Triton's interpreter")
    evidence = whole(logic_only="Triton's interpreter", claims=(step_rate(), acceptance()))
    markdown, html = report(tmp_path, evidence, Verdict.INCONCLUSIVE, engine=engine)
    for cell in (f"step/s, {label}", f"tok/s at tokens a step, {label}", f"{label}: says nothing of a device"):
        assert cell in markdown
        assert cell in unescape(html)
    assert f"step/s · {label}, no speed of a device: +8." in markdown
    assert f"Every speed on this page is {label}." in markdown
    assert f"{label}: these numbers are no speed of a device" in markdown
    assert "gate >=" not in markdown
    told = [line for line in markdown.splitlines() if "ln tok/s" in line]
    assert told
    assert all(label in line for line in told)


def test_the_page_of_an_engine_whose_speed_counts_says_nothing_of_logic(tmp_path):
    markdown, _ = report(tmp_path, whole())
    assert "logic only" not in markdown


def test_a_cpu_build_says_that_it_is_no_gpu_figure(tmp_path):
    assert "CPU reference engine: not a GPU figure." in report(tmp_path, whole())[0]
    other = replace(campaign().engine, build="cuda12")
    assert "GPU figure" not in report(tmp_path / "gpu", whole(), engine=other)[0]


def test_texts_of_an_engine_are_escaped_and_korean_stays(tmp_path):
    nasty = wrong("q8", why="wanted '<서울>', got '<script>alert(1)</script>|*x*' (stop)")
    evidence = whole()
    boots = tuple(
        replace(boot, answers=(*boot.answers, nasty)) if boot.letter == "B" else boot for boot in evidence.boots
    )
    markdown, html = report(tmp_path, replace(evidence, boots=boots), Verdict.FAIL)
    assert "<script>" not in html
    assert "&lt;서울&gt;" in html
    assert "\\<script>alert(1)\\</script>\\|\\*x\\*" in markdown
    assert "script" not in Reader(html).tags


def test_terminal_colours_control_characters_and_lone_surrogates_are_taken_out():
    assert clean("\x1b[31m빨강\x1b[0m\x00\x07 \ud83d\ttab") == "빨강 ?\ttab"


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("gate >= +5 [+8.2, +9.0]", "gate >= +5 [+8.2, +9.0]"),
        ("step_per_s", "step_per_s"),
        ("# PASS", "\\# PASS"),
        ("_x_ [a](http://b)", "\\_x\\_ [a]\\(http://b)"),
        ("&lt; a\nb", "\\&lt; a b"),
    ],
)
def test_markdown_is_escaped_as_little_as_keeps_a_text_a_text(text, escaped):
    page = Page("t", "PASS", (text,), ())
    assert f"\n\n{escaped}\n\n" in to_markdown(page)


def test_a_log_cannot_close_its_code_block(tmp_path):
    markdown, _ = report(tmp_path, whole(at={2: died(log_tail=("````", "# PASS"))}), Verdict.FAIL)
    assert "`````text" in markdown


def test_a_run_that_has_no_boot_yet_has_a_page(tmp_path):
    empty = replace(bracket("AB", claims=(step_rate(),)), boots=())
    markdown, html = report(tmp_path, empty, Verdict.INCONCLUSIVE)
    assert "0 of 2 boots gave data" in markdown
    Reader(html)


def test_boots_that_showed_the_same_witness_share_a_table(tmp_path):
    markdown, _ = report(tmp_path, whole())
    assert markdown.count("## Witness of") == 1


def test_the_page_says_what_was_asked_of_each_arm_and_who_wrote_it(tmp_path, compose, monkeypatch):
    """A profile that was in force is seen, and a variable that is passed on by its name alone."""
    monkeypatch.setenv("LD_PRELOAD", "a-value-of-the-shell")
    (tmp_path / "team.env").write_text("MAX_MODEL_LEN=1024\nPREFIX_CACHE=0\n")
    plan = make(compose("exp=exp8", f"engine.profile={tmp_path}/team.env"), "run-1")
    for page in report(tmp_path, whole(), arms=plan.arms):
        page = unescape(page)
        for words in (
            "Arm base",
            "Arm candidate",
            "overlays engine_report, async_dflash",
            "knob async_dflash=1 (VLLM_GLM53_ASYNC_DFLASH; experiment exp8)",
            "serve --max-model-len",
            "LD_PRELOAD, whatever the shell has",
        ):
            assert words in page
        assert page.count("team.env:2") >= 2, "each arm's note: how the profile's older word is read"
        assert "a-value-of-the-shell" not in page


def test_a_hopeless_interval_is_still_drawn(tmp_path):
    _, html = report(tmp_path, whole("ABABA", [1.0, 1e9, 1e-3, 1e5, 1e6]), Verdict.INCONCLUSIVE)
    assert html.count("<svg ") == 4


def test_a_screen_without_history_draws_no_interval(tmp_path):
    evidence = whole("ABA", [100.0, 108.0, 100.5])
    _, html = report(tmp_path, evidence, Verdict.INCONCLUSIVE)
    assert "no error bar yet" in html


@pytest.mark.parametrize("word", [Verdict.PASS, Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.VOID])
def test_the_verdict_is_the_biggest_word(tmp_path, word):
    _, html = report(tmp_path, whole(), word)
    assert f'<div class="verdict {word}"><b>{word}</b>' in html


def test_matplotlib_comes_with_the_report_and_without_pyplot():
    program = (
        "import sys, campaign.gates; assert 'matplotlib' not in sys.modules; "
        "import campaign.told.report; assert 'matplotlib' in sys.modules; assert 'matplotlib.pyplot' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_page_of_a_made_up_acceptance_says_so_at_its_plot_and_at_its_boots(tmp_path):
    mark = "synthetic acceptance (2.5 tokens a step, made up by the engine)"
    markdown, _ = report(tmp_path, whole(synthetic=mark))
    assert f"tok/s at tokens a step, {mark}" in markdown
    assert f"- with {mark}" in markdown
