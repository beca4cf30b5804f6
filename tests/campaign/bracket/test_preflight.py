"""What is checked before the first boot, against a small real engine package, a real port and a real disk."""

import os
import shutil
import socket
import subprocess
import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from campaign.asked.arms import ResolvedArm, resolve
from campaign.bracket.preflight import fitting_base, preflight
from campaign.config import Arm, Campaign
from campaign.engine.port import listener
from campaign.engine.spec import RUN_MARKER
from campaign.errors import ConfigError, DriftError, ExitCode, HostUnfitError, InvalidError
from campaign.planning.plan import Plan, make
from tests.fakes.line import until
from tests.fakes.neighbour import foreign_server
from tests.fakes.ports import free_port

FAKES = Path(__file__).resolve().parents[2] / "fakes"
WATCHED = "vllm/envs.py"


@pytest.fixture
def port() -> int:
    """A port that nobody holds."""
    return free_port()


@pytest.fixture
def plan(exp8: Campaign, port: int, tmp_path: Path) -> Plan:
    """A plan for the fake engine, without overlays; its models are there."""
    exp8.engine.overlays = []
    exp8.arms = {"base": Arm(), "candidate": Arm(serve={"max_num_seqs": 8})}
    exp8.engine.build = "fake"  # it answers the report protocol by itself
    plan = make(exp8, "run-1")
    exp8.engine.python, exp8.engine.version, exp8.engine.build = str(FAKES / "python"), "0.0.0", "fake"
    exp8.host.port = port
    for model in ("target", "drafter"):
        (tmp_path / model).mkdir()
        (tmp_path / model / "config.json").write_text("{}")
        setattr(exp8.model, model, str(tmp_path / model))
    return plan


def overlaid(plan: Plan, folder: Path, pinned: str, version: str = "0.0.0") -> Plan:
    """The plan with an overlay that watches one file of the engine, pinned to a hash."""
    (folder / "watcher").mkdir(parents=True)
    (folder / "watcher" / "manifest.toml").write_text(
        'why = "to test"\nowner = "tests"\nrequires = []\nasync_safe = true\nasync_reason = "reads nothing"\n'
        '[upstream]\nlink = "none"\nstatus = "none"\ndrop_when = "never"\n'
        f'[[target]]\nversion = "{version}"\nbuilds = ["fake"]\n[[target.file]]\npath = "{WATCHED}"\n'
        f'preimage_sha256 = "{pinned}"\npostimage_sha256 = "{pinned}"\n'
    )
    campaign = plan.campaign
    campaign.host.overlay_path, campaign.arms["candidate"] = [str(folder)], Arm(overlays=["watcher"])
    engine, campaign.engine.version = campaign.engine.version, "0.29.0"  # the list of arguments that is pinned
    arm: ResolvedArm = resolve(campaign, "candidate")
    campaign.engine.version = engine
    return replace(plan, arms=plan.arms | {"candidate": arm})


def test_a_machine_that_is_fit_gives_the_engines_own_tree(plan: Plan) -> None:
    base = preflight(plan)
    assert (base.version, base.build, base.package) == ("0.0.0", "fake", FAKES / "site" / "vllm")


def test_preflight_makes_the_folder_of_the_runs(plan: Plan) -> None:
    preflight(plan)
    assert Path(plan.campaign.host.runs_dir).is_dir()


# the engine


def test_an_interpreter_that_is_not_there_names_the_command_that_makes_it(plan: Plan) -> None:
    plan.campaign.engine.python = "/nosuch/bin/python"
    with pytest.raises(ConfigError, match="no interpreter at /nosuch/bin/python; `make setup` makes it"):
        preflight(plan)


def test_an_interpreter_that_is_none_is_a_configuration_error(plan: Plan, tmp_path: Path) -> None:
    plan.campaign.engine.python = str(tmp_path / "target" / "config.json")
    with pytest.raises(ConfigError, match="cannot be asked"):
        preflight(plan)


def test_an_interpreter_without_an_engine_is_a_configuration_error(plan: Plan) -> None:
    plan.campaign.engine.python = shutil.which("python3") or "python3"
    with pytest.raises(ConfigError, match="has no vLLM"):
        preflight(plan)


@pytest.mark.parametrize(("version", "build"), [("0.29.0", "fake"), ("0.0.0", "cuda")], ids=["version", "build"])
def test_another_engine_than_the_configured_one_is_refused_with_both(plan: Plan, version: str, build: str) -> None:
    plan.campaign.engine.version, plan.campaign.engine.build = version, build
    with pytest.raises(ConfigError, match=rf"configured as vLLM {version} \({build}\), but .* has 0\.0\.0 \(fake\)"):
        preflight(plan)


def test_an_overlay_that_fits_passes(plan: Plan, tmp_path: Path) -> None:
    pinned = sha256((FAKES / "site" / WATCHED).read_bytes()).hexdigest()
    assert fitting_base(overlaid(plan, tmp_path / "o", pinned)).version == "0.0.0"


def test_a_drifted_preimage_is_exit_6_before_any_boot(plan: Plan, tmp_path: Path) -> None:
    with pytest.raises(DriftError, match=rf"watcher.*{WATCHED}|{WATCHED}.*watcher") as caught:
        preflight(overlaid(plan, tmp_path / "o", "0" * 64))
    assert caught.value.exit_code is ExitCode.DRIFT


def test_an_overlay_for_another_engine_is_a_configuration_error(plan: Plan, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"watcher.*0\.0\.0"):
        preflight(overlaid(plan, tmp_path / "o", "0" * 64, version="0.31.0"))


def test_every_arm_is_checked_and_not_the_candidate_alone(plan: Plan, tmp_path: Path) -> None:
    drifted = overlaid(plan, tmp_path / "o", "0" * 64)
    swapped = replace(drifted, arms={"base": drifted.arms["candidate"], "candidate": drifted.arms["base"]})
    with pytest.raises(DriftError):
        preflight(swapped)


# the models


@pytest.mark.parametrize("model", ["target", "drafter"])
def test_a_model_that_is_not_there_is_refused_by_its_key(plan: Plan, model: str) -> None:
    setattr(plan.campaign.model, model, "/nosuch/model")
    with pytest.raises(ConfigError, match=rf"model\.{model}: no config\.json in /nosuch/model"):
        preflight(plan)


def test_a_model_of_a_hub_is_not_looked_for_on_disk(plan: Plan) -> None:
    plan.campaign.model.target, plan.campaign.model.drafter = "org/name", None
    assert preflight(plan).build == "fake"


# the machine


def test_a_disk_that_is_full_is_the_hosts_fault(plan: Plan) -> None:
    """I2: one reason before the first boot, not a failure in each."""
    plan.campaign.host.min_free_gb = 10.0**9
    with pytest.raises(HostUnfitError, match=r"GB free at .*runs, wanted 1e\+09 \(host\.min_free_gb\)") as caught:
        preflight(plan)
    assert caught.value.exit_code is ExitCode.VOID


@pytest.mark.parametrize("runs", ["/proc/nosuch/runs", "FILE/runs"], ids=["no such place", "below a file"])
def test_runs_that_cannot_be_written_are_a_configuration_error(plan: Plan, tmp_path: Path, runs: str) -> None:
    plan.campaign.host.runs_dir = runs.replace("FILE", str(tmp_path / "target" / "config.json"))
    with pytest.raises(ConfigError, match=r"host\.runs_dir"):
        preflight(plan)


def test_a_foreign_server_is_invalid_and_named_by_pid_and_model(plan: Plan, port: int) -> None:
    """A9: an old server that answers with its own configuration."""
    with foreign_server(port), pytest.raises(InvalidError, match="foreign server on port") as caught:
        preflight(plan)
    assert f"port {port}: pid {os.getpid()}" in str(caught.value)
    assert "serving yesterday; nothing was started" in str(caught.value)
    assert caught.value.exit_code is ExitCode.INVALID


def test_any_listener_is_foreign_even_one_that_speaks_no_http(plan: Plan, port: int) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", port))
        server.listen()
        server.settimeout(0.1)
        with pytest.raises(InvalidError, match=f"pid {os.getpid()}"):
            preflight(plan)


def test_a_server_on_another_port_is_none_of_ours(plan: Plan) -> None:
    with foreign_server(0), socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        assert preflight(plan).version == "0.0.0"


def test_the_port_is_free_again_after_the_foreign_server_went(plan: Plan, port: int) -> None:
    with foreign_server(port):
        pass
    assert preflight(plan).version == "0.0.0"


def test_an_engine_of_another_run_is_no_foreign_server_and_its_run_is_named(plan: Plan, port: int) -> None:
    command = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(port)]
    marked = os.environ | {RUN_MARKER: "exp8-20261201-010203-abcd"}
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, env=marked, stdout=quiet, stderr=quiet) as process:
        try:
            until(lambda: listener(port) is not None)
            with pytest.raises(InvalidError) as caught:
                preflight(plan)
        finally:
            process.terminate()
    told = str(caught.value)
    assert "foreign" not in told
    assert f"port {port} is held: pid {process.pid}" in told
    assert "resume exp8-20261201-010203-abcd`, or choose another host.port" in told
