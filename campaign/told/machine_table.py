"""What else the machine did during each boot, as a table of the report; it decides what is void, never a metric."""

from campaign.evidence import BootRecord, Evidence
from campaign.gates.footing import boot_name
from campaign.host.tainted import OTHERS, WINDOW
from campaign.told.view import Table

ABSENT = "-"
COLUMNS = {  # head -> figure of BootRecord.environment, digits
    "others, cores": ("foreign_cpu_cores", 2),
    "in the window": (f"{WINDOW}foreign_cpu_cores", 2),
    "of it stolen": ("steal_cores", 2),
    "own cores": ("own_cpu_cores", 2),
    "engine waited for a CPU, s": ("engine_waited_for_cpu_s", 1),
    "least memory free, MiB": ("memory_available_least_mib", 0),
    "swap used, MiB": ("swap_used_most_mib", 0),
}
GPU_COLUMNS = {
    "SM MHz (median, window)": ("sm_median_mhz", 0),
    "W (most)": ("power_max_w", 0),
    "C (hottest)": ("hottest_celsius", 0),
}


def machine(evidence: Evidence) -> Table | None:
    """One row a boot; a figure that nobody has is a dash. None where nothing was watched."""
    watched = [boot for boot in evidence.boots if boot.environment]
    if not watched:
        return None
    wanted = COLUMNS | {head: figure for gpu in _gpus(watched) for head, figure in _of_gpu(gpu).items()}
    rows = tuple(
        (boot_name(boot), boot.status, *(_shown(boot, *figure) for figure in wanted.values()), _who(boot))
        for boot in watched
    )
    note = "CPU of others is the total of the CPUs that we may use, less ours, plus what the hypervisor took."
    return Table("Machine", ("boot", "status", *wanted, "who"), rows, note)


def _gpus(boots: list[BootRecord]) -> list[str]:
    names = {name.removeprefix(WINDOW).partition("_")[0] for boot in boots for name in boot.environment}
    return sorted(name for name in names if name.startswith("gpu"))


def _of_gpu(gpu: str) -> dict[str, tuple[str, int]]:
    return {f"{gpu} {head}": (f"{WINDOW}{gpu}_{name}", digits) for head, (name, digits) in GPU_COLUMNS.items()}


def _shown(boot: BootRecord, name: str, digits: int) -> str:
    value = boot.environment.get(name)
    return ABSENT if value is None else f"{value:.{digits}f}"


def _who(boot: BootRecord) -> str:
    return boot.facts.get(OTHERS, ABSENT).partition(": ")[2] or ABSENT
