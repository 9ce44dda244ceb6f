"""lookdown doctor: what is installed, what is missing, and how to get it."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, requires, version

from packaging.requirements import Requirement
from rich.console import Console
from rich.markup import escape
from rich.table import Table


def doctor() -> None:
    """Say what is installed and what is missing."""
    console = Console()
    console.print(f"lookdown {version('lookdown')}, Python {platform.python_version()}, {platform.system()}")
    console.print(f"{os.cpu_count()} processor cores")
    table = Table("part", "package", "installed", "next step")
    for part, package in _parts():
        found = _installed(package)
        step = "" if found else f"pip install 'lookdown[{part}]'" if part != "core" else f"pip install {package}"
        table.add_row(part, package, found or "-", escape(step), style=None if found else "yellow")
    console.print(table)


def _parts() -> list[tuple[str, str]]:
    """Return (part, package) for each requirement that the package states of itself."""
    parts = []
    for line in requires("lookdown") or []:
        requirement = Requirement(line)
        marker = str(requirement.marker or "")
        part = marker.partition("extra == ")[2].strip("\"'") or "core"
        if part != "dev" and requirement.name != "lookdown":  # an extra may take in others
            parts.append((part, requirement.name))
    return sorted(parts, key=lambda row: (row[0] != "core", row))


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
