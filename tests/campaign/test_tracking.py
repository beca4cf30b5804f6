"""Twin of campaign.tracking, on real SQLite. Cases G1 to G12."""

import hashlib
import http.server
import os
import socket
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import mlflow
import pytest
from mlflow.entities import Metric, ViewType
from mlflow.tracking import MlflowClient

from campaign.errors import TrackingError
from campaign.gates.base import GateResult
from campaign.gates.step_rate import StepRate
from campaign.journal import RunFolder
from campaign.told import report_tables
from campaign.tracking import projection, publish, ready
from campaign.tracking.numbers import logged
from campaign.tracking.store import failures_told, open_store
from campaign.tracking.upload import MAX_BYTES
from tests.fakes.campaign import campaign, run_folder
from tests.fakes.evidence import boot, bracket, died, step_rate, whole
from verdict.words import Verdict

# MLflow 3.17 uses a loader that SQLAlchemy 2.1 will drop.
pytestmark = pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SADeprecationWarning")

EMPTY = bracket("AB", metrics={"step_per_s": [100.0, 104.0]})


@pytest.fixture
def folder(tmp_path):
    return run_folder(tmp_path)


def results(verdict=Verdict.PASS):
    return (GateResult("kv", verdict, f"{verdict}  KV", (), {"base_blocks": 100.0}),)


def runs(uri, experiment_id, view=ViewType.ACTIVE_ONLY):
    return MlflowClient(uri).search_runs([experiment_id], run_view_type=view, order_by=["attributes.start_time"])


def by_level(uri, links):
    found = sorted(runs(uri, links.experiment_id), key=lambda run: run.info.run_name)
    return {level: [r for r in found if r.data.tags["level"] == level] for level in ("campaign", "experiment", "boot")}


def artifacts(uri, run_id):
    return {entry.path for entry in MlflowClient(uri).list_artifacts(run_id)}


def test_a_campaign_becomes_three_levels_of_runs(uri, folder):
    links = publish(folder, campaign(), EMPTY, results(), Verdict.PASS, uri)
    tree = by_level(uri, links)
    assert [len(tree[level]) for level in ("campaign", "experiment", "boot")] == [1, 1, 2]
    assert {r.data.tags["mlflow.parentRunId"] for r in tree["boot"]} == {links.experiment_run_id}
    assert tree["experiment"][0].data.tags["mlflow.parentRunId"] == links.campaign_run_id
    assert [r.info.run_name for r in tree["boot"]] == ["01-A base", "02-B candidate"]
    assert MlflowClient(uri).get_experiment_by_name("exp8").experiment_id == links.experiment_id


def test_verdicts_arms_and_owner_are_tags(uri, folder):
    tree = by_level(uri, publish(folder, campaign(), EMPTY, results(), Verdict.PASS, uri))
    tags = tree["experiment"][0].data.tags
    assert (tags["verdict"], tags["gate.kv"], tags["campaign_id"]) == ("PASS", "PASS", folder.name)
    assert tags["owner.pid"] == str(os.getpid())
    assert [r.data.tags["arm"] for r in tree["boot"]] == ["base", "candidate"]
    assert tags["mlflow.note.content"].startswith("## PASS: exp8")


def test_numbers_are_metrics_and_the_boots_are_a_series_under_another_name(uri, folder):
    links = publish(folder, campaign(), EMPTY, results(), Verdict.PASS, uri)
    tree = by_level(uri, links)
    assert tree["boot"][0].data.metrics == {"step_per_s": 100.0}
    assert tree["experiment"][0].data.metrics["kv.base_blocks"] == 100.0
    series = MlflowClient(uri).get_metric_history(links.experiment_run_id, "boots.step_per_s")
    assert [(m.step, m.value) for m in series] == [(1, 100.0), (2, 104.0)]


def test_a_void_boot_has_its_own_files_and_is_no_reading_of_the_series(uri, folder):
    """By the second voiding, whose files lie in void-2, although its block stands before the first one's boot."""
    ran = {n: boot(2, "B", metrics={"step_per_s": rate}) for n, rate in ((1, 60.0), (2, 70.0), (3, 104.0))}
    kept = RunFolder(folder)
    for number in (1, 2):
        kept.keep(boot(1, "A", metrics={"step_per_s": 90.0 + number}), ran[number])
        kept.void([1, 2][2 - number :], "others took 3 cores")
        (folder / f"boots/02-B/void-{number}").mkdir()
        (folder / f"boots/02-B/void-{number}/log-{number}.log").write_text("void\n")
    (first,), (_, second) = kept.voided()
    boots = (boot(1, "A", metrics={"step_per_s": 100.0}), second, first, ran[3])
    links = publish(folder, campaign(), replace(EMPTY, boots=boots), results(), Verdict.PASS, uri)
    series = {
        name: [(m.step, m.value) for m in MlflowClient(uri).get_metric_history(links.experiment_run_id, name)]
        for name in ("boots.step_per_s", "void.boots.step_per_s")
    }
    assert series["boots.step_per_s"] == [(1, 100.0), (2, 104.0)]
    assert sorted(series["void.boots.step_per_s"]) == [(2, 60.0), (2, 70.0)]
    files = [artifacts(uri, run_id) for run_id in links.boot_run_ids]
    assert files == [{"engine.log"}, {"log-2.log"}, {"log-1.log"}, {"engine.log"}]


def test_an_acceptance_that_the_engine_made_up_carries_that_wherever_it_is_told():
    made_up = replace(whole("AB", (100.0, 104.0)), synthetic="synthetic acceptance (2.5 tokens a step)")
    for numbers in (
        projection.boot_numbers(made_up.boots[0], Verdict.PASS, made_up),
        projection.experiment_numbers(made_up, (), Verdict.PASS),
    ):
        names = {name for name, _, _ in numbers if "acceptance" in name}
        assert names
        assert all("synthetic.acceptance_" in name for name in names)
    assert report_tables.acceptance(made_up).note.endswith("It is synthetic acceptance (2.5 tokens a step).")


@pytest.mark.case("G5")
def test_the_whole_configuration_is_an_artifact_and_its_digest_a_parameter(uri, folder):
    links = publish(folder, campaign(hypothesis="x" * 9000), EMPTY, results(), Verdict.PASS, uri)
    other = publish(
        run_folder(folder.parent / "b"), campaign(hypothesis="x" * 8999 + "y"), EMPTY, results(), Verdict.PASS, uri
    )
    one, two = (MlflowClient(uri).get_run(found.campaign_run_id) for found in (links, other))
    assert one.data.params["config_sha256"] != two.data.params["config_sha256"]
    assert {"config.json", "plan.json", "result.json"} <= artifacts(uri, links.campaign_run_id)


def test_artifacts_lie_beside_the_database(uri, folder, tmp_path):
    publish(folder, campaign(), EMPTY, results(), Verdict.PASS, uri)
    assert list((tmp_path / "mlflow-artifacts" / "exp8").rglob("plan.json"))
    assert not (Path.cwd() / "mlruns").exists()


def test_the_environment_of_an_engine_is_never_uploaded(uri, folder):
    links = publish(folder, campaign(), EMPTY, results(), Verdict.PASS, uri)
    assert artifacts(uri, links.boot_run_ids[0]) == {"engine.log"}


@pytest.mark.case("G11")
def test_a_link_out_of_the_folder_and_a_strange_name_are_not_uploaded(uri, folder, tmp_path):
    (tmp_path / "secret").write_text("token")
    boot = folder / "boots" / "01-A"
    (boot / "link.txt").symlink_to(tmp_path / "secret")
    (boot / "report.html").symlink_to(folder / "result.json")
    (boot / "a#b?.txt").write_text("x")
    (folder / "report.md").symlink_to(tmp_path / "secret")
    links = publish(folder, campaign(), EMPTY, results(), Verdict.PASS, uri)
    assert artifacts(uri, links.boot_run_ids[0]) == {"engine.log", "report.html"}
    assert "report.md" not in artifacts(uri, links.campaign_run_id)


@pytest.mark.case("G11")
def test_a_boot_folder_that_leads_elsewhere_is_not_uploaded(uri, folder, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    (folder / "boots" / "01-A").rename(elsewhere)
    (folder / "boots" / "01-A").symlink_to(elsewhere)
    links = publish(folder, campaign(), EMPTY, results(), Verdict.PASS, uri)
    assert artifacts(uri, links.boot_run_ids[0]) == set()


def test_of_a_big_log_the_end_is_kept(uri, folder, tmp_path):
    (folder / "boots" / "01-A" / "engine.log").write_text("old line\n" * MAX_BYTES + "last line 한국어\n")
    links = publish(folder, campaign(), EMPTY, results(), Verdict.PASS, uri)
    assert artifacts(uri, links.boot_run_ids[0]) == {"engine.tail.log"}
    (kept,) = tmp_path.rglob("mlflow-artifacts/**/engine.tail.log")
    assert kept.stat().st_size <= MAX_BYTES
    assert kept.read_text().endswith("last line 한국어\n")


@pytest.mark.case("G1", "G2")
def test_numbers_that_mlflow_would_bend_are_left_out_and_a_tag_says_so(uri, folder):
    bent = bracket("AB", metrics={"a": [float("inf"), 1.0], "b": [float("nan"), 1.0], "c": [2.0, 1.0]})
    links = publish(folder, campaign(), bent, results(), Verdict.PASS, uri)
    run = MlflowClient(uri).get_run(links.boot_run_ids[0])
    assert run.data.metrics == {"c": 2.0}
    assert run.data.tags["left_out.a"] == "inf is no finite number"


@pytest.mark.case("G8")
def test_names_outside_mlflows_alphabet_neither_collide_nor_lose_the_batch(uri, folder):
    names = ["acc@1", "acc_1", "acc[0]", "p95(ms)", "/a", "a//b", "한국어", "x" * 300, "fine"]
    odd = bracket("AB", metrics={name: [float(i), 0.0] for i, name in enumerate(names)})
    links = publish(folder, campaign(), odd, results(), Verdict.PASS, uri)
    run = MlflowClient(uri).get_run(links.boot_run_ids[0])
    assert sorted(run.data.metrics.values()) == [0, 1, 2, 3, 4, 5, 6, 8]
    assert run.data.metrics["acc_1"] == 1


@pytest.mark.case("G6")
def test_published_twice_the_runs_are_not_doubled(uri, folder):
    publish(folder, campaign(), replace(EMPTY, boots=EMPTY.boots[:1]), results(), Verdict.INCONCLUSIVE, uri)
    links = publish(folder, campaign(), EMPTY, results(), Verdict.PASS, uri)
    tree = by_level(uri, links)
    assert [len(tree[level]) for level in ("campaign", "experiment", "boot")] == [1, 1, 2]
    assert tree["campaign"][0].data.tags["verdict"] == "PASS"
    (before,) = (r for r in runs(uri, links.experiment_id, ViewType.DELETED_ONLY) if r.data.tags["level"] == "campaign")
    assert before.info.status == "KILLED"
    assert tree["campaign"][0].data.tags["replaces"] == before.info.run_id


def test_a_run_that_is_imported_later_stands_at_its_own_time(uri, folder):
    (folder / "journal.jsonl").write_text('{"event": "note", "time_unix_s": 1700000000.5}\n')
    links = publish(folder, campaign(), EMPTY, results(), Verdict.PASS, uri)
    assert MlflowClient(uri).get_run(links.campaign_run_id).info.end_time == 1700000000500


def test_another_campaign_of_the_same_experiment_is_left_alone(uri, folder, tmp_path):
    first = publish(folder, campaign(), EMPTY, results(), Verdict.PASS, uri)
    second = publish(run_folder(tmp_path, "exp8-other"), campaign(), EMPTY, results(), Verdict.FAIL, uri)
    assert first.experiment_id == second.experiment_id
    assert len(by_level(uri, second)["campaign"]) == 2


@pytest.mark.case("G4")
@pytest.mark.parametrize(
    ("evidence", "status"),
    [
        (EMPTY, "FINISHED"),
        (replace(EMPTY, boots=EMPTY.boots[:1]), "KILLED"),
        (bracket("AB", at={2: died()}), "FAILED"),
        (bracket("AB", at={2: {"status": "invalid", "reason": "async is off"}}), "FAILED"),
    ],
    ids=["whole", "cut short", "engine died", "invalid"],
)
def test_every_run_ends_with_an_explicit_status(uri, folder, evidence, status):
    links = publish(folder, campaign(), evidence, results(), Verdict.INCONCLUSIVE, uri)
    found = runs(uri, links.experiment_id)
    assert {r.info.status for r in found if r.data.tags["level"] != "boot"} == {status}
    assert all(r.info.end_time for r in found)


def test_the_length_of_a_boot_is_the_length_of_its_run(uri, folder):
    links = publish(folder, campaign(), whole("AB", [100.0, 101.0]), results(), Verdict.PASS, uri)
    first, second = (MlflowClient(uri).get_run(run_id).info for run_id in links.boot_run_ids)
    assert first.end_time - first.start_time == pytest.approx(46_100, abs=1)
    assert first.end_time == second.start_time


def test_a_boot_with_a_total_of_its_own_is_not_counted_twice(uri, folder):
    timed = {"seconds": {"boot": 20.0, "window": 10.0, "total": 31.0}}
    links = publish(folder, campaign(), bracket("AB", base=timed), results(), Verdict.PASS, uri)
    info = MlflowClient(uri).get_run(links.boot_run_ids[0]).info
    assert info.end_time - info.start_time == 31_000


def test_an_invalid_experiment_leaves_no_reading_behind(uri, folder):
    evidence = bracket("ABBA", metrics={"step_per_s": [100.0, 104.0, 104.0, 100.0]}, claims=(step_rate(),))
    links = publish(folder, campaign(), evidence, (StepRate().check(evidence),), Verdict.INVALID, uri)
    for run in runs(uri, links.experiment_id):
        assert run.data.metrics == {}
        assert "%" not in run.data.tags.get("mlflow.note.content", "")


def test_a_dead_engine_leaves_no_effect_behind(uri, folder):
    evidence = bracket("ABBA", metrics={"step_per_s": [100.0, 104.0, 104.0, 100.0]}, at={3: died()})
    links = publish(folder, campaign(), evidence, results(), Verdict.FAIL, uri)
    assert "boots.step_per_s" not in MlflowClient(uri).get_run(links.experiment_run_id).data.metrics


def test_texts_from_an_engine_do_no_harm(uri, folder):
    evidence = bracket("AB", at={2: died("한국어 \ud83d " + "x" * 9000, facts={"a@b": "\ud83d", "long": "y" * 9000})})
    links = publish(folder, campaign(), evidence, results(), Verdict.FAIL, uri)
    tags = MlflowClient(uri).get_run(links.boot_run_ids[1]).data.tags
    assert tags["reason"].startswith("한국어 ?")
    assert tags["fact.a:40:b"] == "?"


@pytest.mark.case("G5", "G8")
def test_a_long_text_is_whole_in_an_artifact_and_a_name_that_no_tracker_takes_costs_nothing_else(uri, tmp_path):
    texts = ["y" * 9000, "y" * 8999 + "z"]
    for name, text in zip(["a", "b"], texts, strict=True):
        evidence = bracket("AB", at={2: died(facts={"long": text, "n" * 300: "x"})})
        links = publish(run_folder(tmp_path / name), campaign(), evidence, results(), Verdict.FAIL, uri)
        tags = MlflowClient(uri).get_run(links.boot_run_ids[1]).data.tags
        digest = hashlib.sha256(text.encode()).hexdigest()
        assert f"9000 characters, sha256 {digest}" in tags["fact.long"]
        assert any("1 to 250 characters" in value for key, value in tags.items() if key.startswith("left_out."))
        (kept,) = (entry.path for entry in MlflowClient(uri).list_artifacts(links.boot_run_ids[1], "long"))
        assert kept in tags["fact.long"]
    assert {path.read_text() for path in tmp_path.rglob("long/*.txt")} == set(texts)


@pytest.mark.case("G5")
def test_a_parameter_that_is_too_long_is_an_error_and_never_cut(uri):
    client = open_store(uri)
    run = client.create_run("0")
    with pytest.raises(TrackingError, match="exceeds the maximum length"), failures_told(uri):
        client.log_param(run.info.run_id, "a", "x" * 6001)
    assert client.get_run(run.info.run_id).data.params == {}


@pytest.mark.case("G8")
def test_a_name_that_the_server_refuses_costs_its_own_number_only(uri):
    client = open_store(uri)
    run = client.create_run("0").info.run_id
    metrics = [Metric(key, 1.0, 0, 0) for key in ("fine", "a//b", "also/fine")]
    told = logged(client, run, metrics)
    assert set(client.get_run(run).data.metrics) == {"fine", "also/fine"}
    assert [text.partition(" was")[0] for text in told.values()] == ["a//b"]


@pytest.mark.case("G6")
def test_values_have_one_spelling_whatever_was_typed(uri, folder, compose):
    typed = [compose("exp=exp8", f"claims.step_rate.gate_pct={text}", "tracking=none") for text in ("5", "5.0", "5e0")]
    links = [
        publish(run_folder(folder / str(n)), one, EMPTY, results(), Verdict.PASS, uri) for n, one in enumerate(typed)
    ]
    params = [MlflowClient(uri).get_run(link.campaign_run_id).data.params["config_sha256"] for link in links]
    assert len(set(params)) == 1


@pytest.mark.case("G2", "G12")
def test_a_failure_in_the_middle_leaves_the_earlier_runs_and_nothing_new(uri, folder):
    publish(folder, campaign(), EMPTY, results(), Verdict.PASS, uri)
    broken = replace(EMPTY, boots=(EMPTY.boots[0], replace(EMPTY.boots[1], metrics={"a": "no number"})))
    with pytest.raises(TrackingError, match=r"TypeError.*the results are on disk"):
        publish(folder, campaign(), broken, results(), Verdict.FAIL, uri)
    links = publish(run_folder(folder.parent / "b", "other"), campaign(), EMPTY, results(), Verdict.PASS, uri)
    campaigns = by_level(uri, links)["campaign"]
    assert sorted(r.info.run_name for r in campaigns) == sorted([folder.name, "other"])
    assert "RUNNING" not in {r.info.status for r in runs(uri, links.experiment_id, ViewType.ALL)}


@pytest.mark.case("G9")
@pytest.mark.parametrize("bad", ["file:///tmp/mlruns", "./mlruns", "mlruns", "databricks", "", "sqlite://"])
def test_a_store_that_mlflow_refuses_is_refused_with_the_fix(bad):
    with pytest.raises(TrackingError, match=r"set tracking\.uri=sqlite:////absolute/path/mlflow\.db"):
        ready(bad)


def test_a_folder_that_cannot_be_made_is_told_at_once(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(TrackingError, match="the results are on disk"):
        ready(f"sqlite:///{tmp_path / 'file' / 'mlflow.db'}")


def test_a_file_that_is_no_database_is_told(tmp_path):
    (tmp_path / "mlflow.db").write_text("this is a text that is long enough to be no database\n" * 30)
    with pytest.raises(TrackingError, match="the file is something else"):
        ready(f"sqlite:///{tmp_path / 'mlflow.db'}")


@pytest.mark.case("G7")
def test_a_dead_server_is_told_within_seconds_and_its_password_is_not(folder):
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(TrackingError, match="start the server") as error:
        publish(folder, campaign(), EMPTY, results(), Verdict.PASS, f"http://me:hunter2@127.0.0.1:{port}")
    assert "hunter2" not in str(error.value)


class RefusingTracker(http.server.BaseHTTPRequestHandler):
    """A tracker behind a host check that does not know our address (cases G10)."""

    def refuse(self):
        self.send_response(403)
        self.end_headers()
        self.wfile.write(b"Invalid Host header - possible DNS rebinding attack detected")

    do_GET = do_POST = refuse  # noqa: N815  named by http.server

    def log_message(self, *_):
        """Say nothing."""


@pytest.mark.case("G10")
def test_a_refused_host_header_points_at_the_setting():
    with http.server.HTTPServer(("127.0.0.1", 0), RefusingTracker) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(TrackingError, match="--allowed-hosts"):
            ready(f"http://127.0.0.1:{server.server_port}")
        server.shutdown()


def test_a_deleted_experiment_is_named(uri, folder):
    links = publish(folder, campaign(), EMPTY, results(), Verdict.PASS, uri)
    MlflowClient(uri).delete_experiment(links.experiment_id)
    with pytest.raises(TrackingError, match="experiment 'exp8' is not to be had"):
        publish(folder, campaign(), EMPTY, results(), Verdict.PASS, uri)


@pytest.mark.case("G12")
def test_no_run_is_left_active_and_the_page_is_named(uri, folder):
    links = publish(folder, campaign(), EMPTY, results(), Verdict.PASS, uri)
    assert mlflow.active_run() is None
    assert links.page == f"experiment exp8, run {links.campaign_run_id} in {uri}"
