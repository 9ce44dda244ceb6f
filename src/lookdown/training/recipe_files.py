"""The recipes that come with lookdown: in a checkout they lie beside `src`, in a wheel inside the package."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from lookdown.errors import InputError

__all__ = ["RECIPES", "recipe_file"]

_INSTALLED = Path(__file__).parents[1] / "recipes"
RECIPES = _INSTALLED if _INSTALLED.is_dir() else Path(__file__).parents[3] / "recipes"


def recipe_file(given: Path) -> Path:
    """Return the file of a recipe: one of the user's own, or one that comes with lookdown, by its name."""
    if given.exists():
        return given
    known = sorted(file.stem for file in RECIPES.glob("*.toml"))
    if given.stem in known and given in (Path(given.stem), Path("recipes") / f"{given.stem}.toml"):
        return RECIPES / f"{given.stem}.toml"
    close = get_close_matches(given.stem, known, n=1)
    guess = f"; did you mean {close[0]}?" if close else ""
    raise InputError(f"{given} is no file, and no recipe that comes with lookdown: {', '.join(known)}{guess}")
