"""The scripts that measure: in a checkout they lie beside `src`, in a wheel inside the package."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lookdown.errors import InputError
from lookdown.suggestions import did_you_mean

__all__ = ["FOLDER", "chosen", "names_in"]

_INSTALLED = Path(__file__).parent / "measurements"
FOLDER = _INSTALLED if _INSTALLED.is_dir() else Path(__file__).parents[4] / "benchmarks"
_SHARED = "sidebyside"  # what the scripts measure with


def names_in(folder: Path = FOLDER) -> list[str]:
    """Return the names of all scripts."""
    return sorted(file.stem for file in folder.glob("*.py") if file.stem != _SHARED)


def chosen(names: Sequence[str], folder: Path = FOLDER) -> list[Path]:
    """Return the files of the named scripts in their order, or of all scripts where `names` is empty."""
    available = names_in(folder)
    for name in names:
        if name not in available:
            raise InputError(f"there is no benchmark {name!r}; {did_you_mean(name, available)}")
    return [folder / f"{name}.py" for name in dict.fromkeys(names or available)]
