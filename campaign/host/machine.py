"""Which machine this is, read from files alone: its noise is known only by these names (statistics.md 1.12)."""

import platform
import re
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

ID_DIGITS = 8  # of a digest: enough to tell hosts apart, and it gives the machine's id away to nobody
NONE = "none"


@dataclass(frozen=True)
class Machine:
    """A host, its CPU, its GPUs and their driver, in words."""

    host: str  # name and digits of its id
    cpu: str
    gpu: str
    driver: str

    def __str__(self) -> str:
        gpu = "no GPU" if self.gpu == NONE else f"{self.gpu}, driver {self.driver}"
        return f"{self.host}, {self.cpu}, {gpu}"


@cache
def this(root: Path = Path("/")) -> Machine:
    """The machine under a root, which is another one only in tests. Starts no process."""
    return Machine(_host(root), _cpu(root), _gpus(root), _driver(root))


def uptime_id(root: Path = Path("/")) -> str:
    """The kernel's name of the time since the machine was started; empty where it tells none."""
    return _text(root / "proc/sys/kernel/random/boot_id").strip()


def _host(root: Path) -> str:
    name = platform.node().split(".")[0] or "host"
    found = _text(root / "etc/machine-id").strip() or _text(root / "var/lib/dbus/machine-id").strip() or name
    return f"{name}-{sha256(found.encode()).hexdigest()[:ID_DIGITS]}"


def _cpu(root: Path) -> str:
    text = _text(root / "proc/cpuinfo")
    name = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    cores = len(re.findall(r"^processor\s*:", text, re.MULTILINE))
    return f"{name[1].strip() if name else platform.machine()} x{max(1, cores)}"


def _gpus(root: Path) -> str:
    """Models with their number, sorted; `none` without the driver of one maker."""
    files = sorted((root / "proc/driver/nvidia/gpus").glob("*/information"))
    models = [found[1].strip() for file in files if (found := re.search(r"^Model:\s*(.*)$", _text(file), re.MULTILINE))]
    return ", ".join(f"{model} x{models.count(model)}" for model in sorted(set(models))) or NONE


def _driver(root: Path) -> str:
    found = re.search(r"Kernel Module.*?\s(\d+\.\d+(?:\.\d+)?)\s", _text(root / "proc/driver/nvidia/version"))
    return found[1] if found else NONE


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
