"""Twin of campaign.inspection.scrapes: stalled engines, counters that are missing, texts that are none."""

import pytest

from campaign.errors import ConfigError
from campaign.inspection import look_into_all

DRAFTS, ACCEPTED = "vllm:spec_decode_num_drafts_total", "vllm:spec_decode_num_accepted_tokens_total"
GENERATED, WAITING, RUNNING = "vllm:generation_tokens_total", "vllm:num_requests_waiting", "vllm:num_requests_running"


def scrape(**values):
    names = {"drafts": DRAFTS, "accepted": ACCEPTED, "generated": GENERATED, "waiting": WAITING, "running": RUNNING}
    return "".join(f'{names.get(name, f"vllm:{name}")}{{engine="0"}} {value}\n' for name, value in values.items())


@pytest.fixture
def look(tmp_path):
    """look(text, ...): the finding of these scrapes, in order."""

    def run(*texts):
        paths = [tmp_path / f"{number}.txt" for number in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text)
        return look_into_all(paths)[0]

    return run


@pytest.mark.case("A5")
@pytest.mark.parametrize(
    ("series", "code", "words"),
    [
        (
            [{"waiting": 3, "running": 0, "num_preemptions_total": 10 * n} for n in range(4)],
            1,
            "no token was generated",
        ),
        ([{"waiting": 0, "running": 3} for _ in range(4)], 1, "while 3 requests were there"),
        ([{"waiting": n % 2, "running": 2} for n in range(3)], 1, "while 2 requests were there"),
        ([{"waiting": 3, "running": 1, "prompt_tokens_total": 100 * n} for n in range(3)], 0, ""),
        ([{"waiting": 3, "running": 1, "iteration_tokens_total_count": n} for n in range(3)], 0, ""),
        ([{"waiting": 0, "running": n} for n in range(3)], 0, ""),
    ],
    ids=["it only preempts", "they run", "now waiting, now running", "prefill", "steps", "nobody was there at first"],
)
def test_an_engine_that_has_requests_and_does_no_work_is_stalled(look, series, code, words):
    found = look(*(scrape(generated=100, **row) for row in series))
    assert found.code == code
    assert words in "\n".join(found.lines)
    assert (code == 1) == ("engine stalled" in "\n".join(found.lines))


def test_drafts_without_positions_are_a_missing_metric_and_no_acceptance_of_nothing(look):
    found = look(scrape(drafts=100, generated=200))
    assert found.code == 5
    assert found.told_numbers == {}
    assert "metric missing: 100 drafts, and none of vllm:spec_decode" in found.lines[-1]
    assert "1.000 tokens a step" not in "\n".join(found.lines)


def test_two_answers_in_one_text_are_not_added_up(look):
    with pytest.raises(ConfigError, match="twice with the same labels"):
        look(scrape(drafts=100, generated=200) + scrape(drafts=150, generated=300))
