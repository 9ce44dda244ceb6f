"""The layout is part of the design: arrows point down, folders name concepts, the public surface is listed once."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import lookdown

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "lookdown"
LAYERS = (
    "chips", "networks", "metrics", "losses", "evaluation", "training", "adaptation", "gallery", "experiments",
    "service", "cli",
)  # fmt: skip
BELOW_EVERYTHING = {"errors", "config"}
ARRAYS_ONLY = {"metrics": {"chips", "networks"}, "losses": {"chips", "networks"}}


def imported_parts(path: Path) -> set[str]:
    """Names directly below `lookdown` that a file imports, wherever in the file it does."""
    parts: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            if node.module == "lookdown":
                parts |= {alias.name for alias in node.names if (SOURCE / alias.name).exists()}
            names = [node.module or ""]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        parts |= {name.split(".")[1] for name in names if name.startswith("lookdown.")}
    return parts


@pytest.mark.parametrize("layer", [layer for layer in LAYERS if (SOURCE / layer).exists()])
def test_a_layer_imports_only_what_is_below_it(layer: str) -> None:
    allowed = ({*LAYERS[: LAYERS.index(layer) + 1]} - ARRAYS_ONLY.get(layer, set())) | BELOW_EVERYTHING
    for path in (SOURCE / layer).rglob("*.py"):
        above = imported_parts(path) - allowed
        assert not above, f"{path.relative_to(ROOT)} imports {', '.join(sorted(above))}"


def test_every_folder_is_a_known_layer_and_none_is_a_drawer() -> None:
    folders = {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders <= set(LAYERS)
    drawers = {"utils", "util", "common", "misc", "helpers", "helper", "managers", "manager"}
    assert not [path for path in SOURCE.rglob("*") if path.stem in drawers]


def test_each_module_has_its_test_at_the_same_path() -> None:
    tested_elsewhere = {
        "metrics/calibration.py": "metrics/test_decisions.py",
        "metrics/estimate.py": "metrics/test_decisions.py",
        "metrics/metric.py": "metrics/test_decisions.py",
        "metrics/inputs.py": "metrics/test_pair_moments.py",
        "metrics/pairwise.py": "metrics/test_gaussian.py",
        "metrics/cosine.py": "metrics/test_storage.py",
        "metrics/euclidean.py": "metrics/test_ranking.py",
        "experiments/gaussian_world.py": "experiments/test_discussion_1.py",
        "errors.py": "test_packaging.py",
        "__main__.py": "test_packaging.py",
    }
    for path in SOURCE.rglob("*.py"):
        place = path.relative_to(SOURCE).as_posix()
        if path.name == "__init__.py":
            continue
        test = tested_elsewhere.get(place, (path.relative_to(SOURCE).parent / f"test_{path.name}").as_posix())
        assert (ROOT / "tests" / test).exists(), f"{place} has no test"


def test_the_public_names_are_listed_once_and_resolve() -> None:
    assert sorted(set(lookdown.__all__)) == sorted(lookdown.__all__)
    for name in lookdown.__all__:
        assert getattr(lookdown, name) is not None
    assert dir(lookdown) == sorted(lookdown.__all__)
    assert set(lookdown._HOMES) | {"__version__"} == set(lookdown.__all__)
    assert not hasattr(lookdown, "GausianLikelihoodRatio")
