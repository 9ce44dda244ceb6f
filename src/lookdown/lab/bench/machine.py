"""What a run was measured on."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

__all__ = ["PACKAGES", "Machine", "this_machine", "usable_cores"]

PACKAGES = (
    "numpy", "scipy", "scikit-learn", "torch", "faiss-cpu", "pytorch-metric-learning", "torchmetrics", "openvino",
    "onnxruntime", "timm", "lancedb", "pyarrow", "pillow", "typer",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Machine:
    """Processor, memory, system, and the packages whose speed is measured."""

    processor: str
    cores: int  # that this process may use
    memory: int | None  # bytes
    system: str
    python: str
    packages: dict[str, str]
    load: float | None = None  # processes that ran or waited in the minute before: figures of a busy machine are poor

    def sentence(self) -> str:
        """Say it in a line or two."""
        memory = "" if self.memory is None else f", {self.memory / 2**30:.0f} GB of memory"
        packages = ", ".join(f"{name} {number}" for name, number in self.packages.items())
        load = "" if self.load is None else f" The load was {self.load:.1f} before it began."
        return f"{self.processor}, {self.cores} cores{memory}, {self.system}, Python {self.python}; {packages}.{load}"


def this_machine() -> Machine:
    """Look at the machine and at what is installed."""
    return Machine(
        processor=_processor(),
        cores=usable_cores(),
        memory=_memory(),
        system=f"{platform.system()} {platform.machine()}",
        python=platform.python_version(),
        packages={name: installed for name in PACKAGES if (installed := _version(name))},
        load=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
    )


def usable_cores() -> int:
    """Return the cores that this process may use, which in a container are fewer than there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Return the name that Linux gives; elsewhere Python knows it."""
    if cpuinfo.is_file():
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # Windows has no such call
        return None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
