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


def server(model="a", engines=("0",), began=1.7e9, process=None, drafts=100.0):
    """A scrape of a server with this name, these engines and these times at which it and its counters began."""
    rows = [
        f'{name}{{engine="{engine}",model_name="{model}"}} {value}'
        for engine in engines
        for name, value in ((GENERATED, drafts * 2), ("vllm:generation_tokens_created", began), (DRAFTS, drafts))
    ]
    return "\n".join([*rows, *([f"process_start_time_seconds {process}"] if process else [])]) + "\n"


OTHERS = {
    "another model": ({"model": "b"}, "model_name a, then b"),
    "other engines": ({"engines": ("0", "1")}, "engine 0, then 0, 1"),
    "other counters": (
        {"began": 1.7e9 + 60},
        "vllm:generation_tokens_created says that it began 2023-11-14 22:13:20 UTC, then 2023-11-14 22:14:20 UTC",
    ),
    "another process": ({"process": 1.8e9}, "process_start_time_seconds says that it began"),
}


@pytest.mark.case("A9", "B8")
@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("drafts", [200.0, 50.0], ids=["counters that grew", "counters that fell"])
def test_texts_of_two_servers_are_no_window_and_give_no_number(look, name, drafts):
    fields, words = OTHERS[name]
    found = look(server(process=1.7e9), server(**({"process": 1.7e9, "drafts": drafts} | fields)))
    assert (found.code, found.told_numbers, len(found.rows)) == (5, {}, 1)
    assert f"0.txt and 1.txt are of two servers, which make no window: {words}" in found.lines[-1]


def test_texts_of_one_server_are_a_window_also_where_one_shows_no_times(look):
    assert look(server(process=1.7e9), server(process=1.7e9, drafts=150.0)).numbers["drafts"] == 50
    assert look(server(process=1.7e9), server(drafts=150.0)).numbers["drafts"] == 50


def test_a_server_that_answers_again_is_one_of_several_that_answer_in_turn(look):
    found = look(*(server(began=1.7e9 + n % 2, drafts=100.0 * (1 + n % 2)) for n in range(5)))
    assert "answer /metrics in turn" in found.lines[-1]


def test_a_time_that_is_none_is_told_as_it_is(look):
    assert "then at 1e+300" in look(server(), server(began=1e300)).lines[-1]


@pytest.mark.case("B5")
@pytest.mark.parametrize("series", [1, 2], ids=["totals", "a window"])
def test_more_prefix_hits_than_queries_contradict_each_other_and_make_no_hit_rate(look, series):
    none, some = (scrape(generated=n, prefix_cache_queries_total=n, prefix_cache_hits_total=3 * n) for n in (0, 100))
    found = look(*(none, some)[-series:])
    assert (found.code, found.told_numbers) == (5, {})
    told = "\n".join(found.lines)
    assert "INVALID (5)         the counters contradict each other: 300 tokens were found in the prefix cache" in told
    assert "100 looked up: no hit rate of such counters" in told
    assert "% of the tokens asked for" not in told
