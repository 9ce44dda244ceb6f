from __future__ import annotations

from pathlib import Path

import pytest

from lookdown.errors import InputError
from lookdown.training.recipe_files import RECIPES, recipe_file


def test_a_file_of_ones_own_comes_before_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert recipe_file(Path("synthetic")) == RECIPES / "synthetic.toml"
    assert recipe_file(Path("recipes/synthetic.toml")) == RECIPES / "synthetic.toml"  # as the documentation writes it
    (tmp_path / "synthetic").write_text("mine")
    assert recipe_file(Path("synthetic")) == Path("synthetic")


def test_every_recipe_that_comes_with_lookdown_can_be_named() -> None:
    files = list(RECIPES.glob("*.toml"))
    assert [recipe_file(Path(file.stem)) for file in files] == files


@pytest.mark.parametrize(
    ("given", "told"),
    [("synthetc", "did you mean synthetic?"), ("elsewhere/synthetic.toml", "no file"), ("nothing.toml", "mar20_cpu")],
)
def test_another_name_is_answered_by_those_that_are_known(given: str, told: str) -> None:
    with pytest.raises(InputError) as refused:
        recipe_file(Path(given))
    assert told in str(refused.value)
