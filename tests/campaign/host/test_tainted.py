"""Which boots a machine spoils: by what was seen of it, never by what they measured."""

from dataclasses import replace

import pytest

from campaign.host.host_watch import Seen
from campaign.host.tainted import judged, limits
from campaign.told.machine_table import machine
from tests.campaign.host.test_host_watch import BURNT, QUIET, S, gpu, seen
from tests.fakes.evidence import boot, whole

WINDOW = (10 * S, 20 * S)


def one(found: Seen, status: str = "ok", window: tuple[int, int] | None = WINDOW, cores: float = 0.25):
    """One boot, judged by what was seen."""
    record = boot(status=status, reason="" if status == "ok" else "engine died", metrics={"step_per_s": 100.0})
    (told,) = judged((record,), (window,), found, limits(cores, ()))
    return told


def test_a_tainted_boot_is_void_and_keeps_its_readings() -> None:
    told = one(seen(*BURNT))
    assert (told.status, told.metrics) == ("void", {"step_per_s": 100.0})
    assert "took 0.50 cores over the boot" in told.reason
    assert told.environment["foreign_cpu_cores"] == 0.5
    assert told.environment["window_foreign_cpu_cores"] == 0


@pytest.mark.parametrize("status", ["failed", "invalid"])
def test_a_busy_machine_excuses_no_boot_that_failed_or_was_not_what_was_asked(status: str) -> None:
    told = one(seen(*BURNT), status, None)
    assert (told.status, told.reason) == (status, "engine died")
    assert told.environment["foreign_cpu_cores"] == 0.5


def test_a_quiet_boot_is_left_as_it_is_and_names_nobody() -> None:
    told = one(seen(*QUIET))
    assert (told.status, told.reason, told.facts) == ("ok", "", {})


def test_others_are_named_before_they_are_too_much() -> None:
    told = one(seen(*BURNT), cores=0.6, window=None)
    assert told.status == "ok"
    assert told.facts["others"].startswith("0.50 cores: python3 pid 4242 0.49")


def test_a_window_alone_can_be_spoiled() -> None:
    assert one(seen(*BURNT), window=(0, 10 * S), cores=0.6).status == "void"


def test_the_two_boots_of_a_pair_are_spoiled_together() -> None:
    pair = (boot(1, "A", pair=1), boot(2, "B", pair=1))
    told = judged(pair, (WINDOW, WINDOW), seen(*BURNT), limits(0.25, ()))
    assert [record.status for record in told] == ["void", "void"]


@pytest.mark.case("D13")
def test_a_boot_at_another_clock_than_those_before_is_void() -> None:
    usual = {"window_gpu0_sm_median_mhz": 2990.0}
    before = [boot(1, environment=usual), boot(2, "B", environment=usual), boot(3, status="void", environment={})]
    found = seen(*QUIET, gpus=[gpu(15, 2470.0)])
    (told,) = judged((boot(4),), (WINDOW,), found, limits(0.25, before))
    assert told.status == "void"
    assert "GPU 0 ran at 2470 MHz (median), in the boots before at 2990" in told.reason
    (same,) = judged((boot(4),), (WINDOW,), replace(found, gpus=[gpu(15, 2985.0)]), limits(0.25, before))
    assert same.status == "ok"


def test_the_report_shows_what_the_machine_did_and_no_figure_that_nobody_has() -> None:
    told = one(seen(*BURNT, gpus=[gpu(15, 1950.0)]))
    table = machine(whole(at={1: {"environment": told.environment, "facts": told.facts, "status": told.status}}))
    assert table is not None
    cells = dict(zip(table.head, table.rows[0], strict=True))
    assert (cells["boot"], cells["status"], cells["others, cores"], cells["in the window"]) == (
        "01-A",
        "void",
        "0.50",
        "0.00",
    )
    assert (cells["gpu0 SM MHz (median, window)"], cells["who"]) == ("1950", "python3 pid 4242 0.49")
    assert machine(whole()) is None
