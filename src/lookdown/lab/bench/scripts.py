"""The scripts that measure: in a checkout they lie beside `src`, in a wheel inside the package."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from lookdown.errors import InputError

__all__ = ["FOLDER", "chosen", "names_in"]

_INSTALLED = Path(__file__).parent / "measurements"
FOLDER = _INSTALLED if _INSTALLED.is_dir() else Path(__file__).parents[4] / "benchmarks"
_SHARED = "sidebyside"  # what the scripts measure with


def names_in(folder: Path = FOLDER) -> list[str]:
    """Return the names of all scripts."""
    return sorted(file.stem for file in folder.glob("*.py") if file.stem != _SHARED)


def chosen(names: Sequence[str], folder: Path = FOLDER) -> list[Path]:
    """Return the files of some scripts in the order given, or of all of them where none is named."""
    known = names_in(folder)
    for name in names:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            guess = f"; did you mean {close[0]}?" if close else ""
            raise InputError(f"there is no benchmark {name!r}, only {', '.join(known)}{guess}")
    return [folder / f"{name}.py" for name in dict.fromkeys(names or known)]
