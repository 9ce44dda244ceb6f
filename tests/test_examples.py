"""The examples do what they say, in an empty folder, with what `lookdown` itself offers."""

from __future__ import annotations

import ast
import json
import re
import runpy
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.templates import template

from lookdown.lab.synthetic import small_world

EXAMPLES = Path(__file__).parents[1] / "examples"
NAMES = (
    "adapt",
    "index_and_search",
    "loss_in_your_own_loop",
    "metric_with_faiss",
    "scenes_to_geojson",
    "teach",
)
Run = Callable[[str], str]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run an example in an empty folder, and return what it prints."""

    def run(name: str) -> str:
        monkeypatch.chdir(tmp_path)
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        return capsys.readouterr().out

    return run


@pytest.fixture
def world(tmp_path: Path) -> None:
    """The world that two examples draw, drawn once."""
    shutil.copytree(template("small-world", small_world), tmp_path / "world")


def figures(text: str, pattern: str) -> list[float]:
    return [float(figure) for figure in re.findall(pattern, text)]


def test_every_example_is_tested() -> None:
    assert sorted(path.stem for path in EXAMPLES.glob("*.py")) == list(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_short_and_imports_from_the_package_itself(name: str) -> None:
    text = (EXAMPLES / f"{name}.py").read_text()
    assert len(text.splitlines()) <= 40
    modules = [node.module for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    ours = {str(module) for module in modules if str(module).startswith("lookdown")}
    assert "lookdown" in ours <= {"lookdown", "lookdown.lab.synthetic"}


@pytest.mark.usefixtures("world")
def test_index_and_search(run: Run, tmp_path: Path) -> None:
    printed = run("index_and_search")
    assert "The best of 220 chips is chips/gas-carrier-" in printed
    assert (tmp_path / "gallery").is_dir()
    assert run("index_and_search") == printed  # a second run opens the gallery


@pytest.mark.usefixtures("world")
def test_teach(run: Run) -> None:
    before, after = figures(run("teach"), r": (\d+) gas carriers")
    assert after > before


def test_adapt(run: Run) -> None:
    printed = run("adapt")
    assert "Likely to be better: yes" in printed
    before, after = figures(printed, r"precision \w+: ([\d.]+)")
    assert after > before + 0.2


def test_loss_in_your_own_loop(run: Run) -> None:
    scores = figures(run("loss_in_your_own_loop"), r"precision ([\d.]+)")
    assert len(scores) == 6
    assert scores[-1] > scores[0] + 0.15


def test_metric_with_faiss(run: Run) -> None:
    same, right = figures(run("metric_with_faiss"), r"([\d.]+)%")
    assert same > 99
    assert right > 85


def test_scenes_to_geojson(run: Run, tmp_path: Path) -> None:
    assert run("scenes_to_geojson").startswith("20 hits of 529 windows between ")
    layer = json.loads((tmp_path / "hits.geojson").read_text())
    assert len(layer["features"]) == 20
    assert layer["features"][0]["geometry"]["type"] == "Polygon"
    assert {"id", "score", "scene"} <= layer["features"][0]["properties"].keys()
