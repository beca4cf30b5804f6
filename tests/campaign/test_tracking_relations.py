"""Twin of campaign.tracking.relations: a run in another's place, on real SQLite."""

from pathlib import Path

import pytest
from mlflow.tracking import MlflowClient

from campaign.errors import ConfigError
from campaign.gates.base import GateResult
from campaign.tracking import Relation, exposure, publish, register
from tests.fakes.campaign import campaign, run_folder
from tests.fakes.evidence import bracket
from verdict.words import Verdict

pytestmark = pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SADeprecationWarning")

EVIDENCE = bracket("AB", metrics={"step_per_s": [100.0, 104.0]})
RESULTS = (GateResult("kv", Verdict.PASS, "PASS  KV", (), {}),)


def put(folder: Path, uri: str, name: str = "exp8") -> str:
    """Import a run; its experiment-level run id."""
    return publish(folder, campaign(name=name), EVIDENCE, RESULTS, Verdict.PASS, uri).experiment_run_id


def said(uri: str, run_id: str) -> dict[str, str]:
    tags = MlflowClient(uri).get_run(run_id).data.tags
    return {
        tag: tags[tag] for tag in ("supersedes", "superseded_by", "corrects", "corrected_by", "because") if tag in tags
    }


def test_a_correction_marks_both_runs_and_deletes_nothing(uri: str, tmp_path: Path) -> None:
    old, new = run_folder(tmp_path, "old"), run_folder(tmp_path, "new")
    before = put(old, uri)
    register(new, "exp8", Relation(corrects="old", because="the fan was off"), uri)
    after = put(new, uri)
    assert said(uri, before) == {"corrected_by": "new"}
    assert said(uri, after) == {"corrects": "old", "because": "the fan was off"}
    assert MlflowClient(uri).get_run(before).data.metrics == MlflowClient(uri).get_run(after).data.metrics


@pytest.mark.parametrize("order", [("old", "new"), ("new", "old"), ("old", "new", "old", "new")], ids="-".join)
def test_marks_are_made_again_from_the_folders_in_any_order(uri: str, tmp_path: Path, order: tuple[str, ...]) -> None:
    old, new = run_folder(tmp_path, "old"), run_folder(tmp_path, "new")
    (new / "ledger.json").write_text('{"supersedes": "old", "because": "more boots"}')
    made = {name: put(old if name == "old" else new, uri) for name in order}
    assert said(uri, made["old"]) == {"superseded_by": "new"}
    assert said(uri, made["new"]) == {"supersedes": "old", "because": "more boots"}


def test_what_cannot_be_is_refused_and_nothing_is_written(uri: str, tmp_path: Path) -> None:
    old, new = run_folder(tmp_path, "old"), run_folder(tmp_path, "new")
    put(old, uri)
    put(run_folder(tmp_path, "foreign"), uri, name="aa")
    for asked, why in [
        (Relation(supersedes="nowhere"), "there is no run nowhere in the tracker"),
        (Relation(supersedes="foreign"), "is a run of aa, wanted one of exp8"),
        (Relation(supersedes="new"), "cannot stand in its own place"),
    ]:
        with pytest.raises(ConfigError, match=why):
            register(new, "exp8", asked, uri)
    assert not (new / "ledger.json").exists()
    register(new, "exp8", Relation(supersedes="old"), uri)
    put(new, uri)
    with pytest.raises(ConfigError, match="supersedes old already"):
        register(new, "exp8", Relation(supersedes="foreign"), uri)
    with pytest.raises(ConfigError, match="not both can"):
        register(old, "exp8", Relation(supersedes="new"), uri)


def test_three_runs_do_not_stand_in_each_others_place_in_a_ring(uri: str, tmp_path: Path) -> None:
    a, b, c = (run_folder(tmp_path, name) for name in "abc")
    put(a, uri)
    for newer, older in ((b, "a"), (c, "b")):
        register(newer, "exp8", Relation(supersedes=older), uri)
        put(newer, uri)
    with pytest.raises(ConfigError, match="not both can"):
        register(a, "exp8", Relation(corrects="c"), uri)
    assert not (a / "ledger.json").exists()


def test_a_file_that_is_none_of_ours_is_told(uri: str, tmp_path: Path) -> None:
    folder = run_folder(tmp_path, "new")
    (folder / "ledger.json").write_text('{"supersedes": 3}')
    with pytest.raises(ConfigError, match=r"ledger\.json: wanted a map of texts"):
        put(folder, uri)


@pytest.mark.case("G11")
@pytest.mark.parametrize(
    ("address", "environment", "told"),
    [
        ("sqlite:////a.db", {}, ""),
        ("http://127.0.0.1:5000", {}, ""),
        ("http://localhost:5000", {}, ""),
        ("http://[::1]:5000", {}, ""),
        ("https://tracker.example", {}, ""),
        ("http://tracker.example:5000", {}, "no password is given"),
        ("http://0.0.0.0:5000", {}, "no password is given"),
        ("http://10.0.0.7", {"MLFLOW_TRACKING_USERNAME": "me"}, "can read its password"),
    ],
)
def test_an_open_server_is_told(address: str, environment: dict[str, str], told: str) -> None:
    found = exposure(address, environment)
    assert told in found
    assert bool(found) == bool(told)


def test_an_address_is_told_without_its_query() -> None:
    assert "hunter2" not in exposure("http://tracker.example:5000/?key=hunter2", {})
