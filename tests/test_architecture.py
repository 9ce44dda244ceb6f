"""The layout is part of the design: arrows point down, folders name concepts, the public surface is listed once."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import lookdown

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "lookdown"
LAYERS = (
    "chips", "networks", "metrics", "losses", "evaluation", "training", "adaptation", "gallery", "service", "cli",
    "lab",
)  # fmt: skip
BELOW_EVERYTHING = {"atomic", "config", "errors", "progress", "suggestions"}
NOT_THESE = {"metrics": {"chips", "networks"}, "losses": {"chips", "networks"}, "lab": {"cli"}}


def imported_parts(source: str) -> set[str]:
    """Names directly below `lookdown` that a file imports, wherever in the file and by whichever spelling."""
    parts: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "a relative import"
            if node.module == "lookdown":
                homes = [lookdown._HOMES.get(alias.name, f"lookdown.{alias.name}") for alias in node.names]
                parts |= {home.split(".")[1] for home in homes}
            elif (node.module or "").startswith("lookdown."):
                parts.add((node.module or "").split(".")[1])
        elif isinstance(node, ast.Import):
            for alias in node.names:
                assert alias.name != "lookdown", "the package as a whole: import the part that is meant"
                if alias.name.startswith("lookdown."):
                    parts.add(alias.name.split(".")[1])
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("lookdown."):
            parts.add(node.value.split(".")[1])  # import_module("lookdown.cli")
    return parts - {"__version__"}


@pytest.mark.parametrize(
    "line",
    [
        "from lookdown.cli import app",
        "import lookdown.cli.doctor",
        "from lookdown import cli",
        "def f():\n    from lookdown.cli.doctor import doctor",
        "import_module('lookdown.cli')",
    ],
)
def test_the_reader_of_imports_sees_every_spelling(line: str) -> None:
    assert imported_parts(line) == {"cli"}
    assert imported_parts("from lookdown import Cosine, errors") == {"metrics", "errors"}


@pytest.mark.parametrize("layer", [layer for layer in LAYERS if (SOURCE / layer).exists()])
def test_a_layer_imports_only_what_is_below_it(layer: str) -> None:
    allowed = ({*LAYERS[: LAYERS.index(layer) + 1]} - NOT_THESE.get(layer, set())) | BELOW_EVERYTHING
    if layer == "cli":
        allowed.add("lab")  # lazily: see below
    for path in (SOURCE / layer).rglob("*.py"):
        above = imported_parts(path.read_text()) - allowed
        assert not above, f"{path.relative_to(ROOT)} imports {', '.join(sorted(above))}"


def test_the_command_line_imports_the_laboratory_only_when_a_command_runs() -> None:
    found = 0
    for path in (SOURCE / "cli").rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            uses = "lab" in imported_parts(ast.unparse(node))
            for_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            found += uses
            assert not uses or for_types or isinstance(node, ast.FunctionDef), f"{path.name} imports the laboratory"
    assert found > 3


def test_what_lies_below_everything_imports_nothing_of_ours() -> None:
    assert imported_parts((SOURCE / "errors.py").read_text()) == set()
    for name in BELOW_EVERYTHING:
        assert imported_parts((SOURCE / f"{name}.py").read_text()) <= BELOW_EVERYTHING, f"{name}.py imports a layer"


def test_every_folder_is_a_known_layer_and_none_is_a_drawer() -> None:
    folders = {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders <= {*LAYERS}
    drawers = {"utils", "util", "common", "misc", "helpers", "helper", "managers", "manager"}
    assert not [path for path in SOURCE.rglob("*") if path.stem in drawers]


def test_each_module_has_its_test_at_the_same_path() -> None:
    tested_elsewhere = {
        "lab/synthetic/gaussian_world.py": "lab/paper/test_discussion_1.py",
        "errors.py": "test_packaging.py",
        "__main__.py": "test_packaging.py",
    }
    for path in SOURCE.rglob("*.py"):
        place = path.relative_to(SOURCE).as_posix()
        if path.name == "__init__.py":
            continue
        test = tested_elsewhere.get(place, (path.relative_to(SOURCE).parent / f"test_{path.name}").as_posix())
        if path.parent.name == "sources" and not (ROOT / "tests" / test).exists():
            test = "chips/sources/test_sources.py"  # sources of one shape share their tests
            assert path.stem in (ROOT / "tests" / test).read_text()
        assert (ROOT / "tests" / test).exists(), f"{place} has no test"


def test_the_public_names_are_listed_once_and_resolve() -> None:
    assert sorted(set(lookdown.__all__)) == sorted(lookdown.__all__)
    for name in lookdown.__all__:
        assert getattr(lookdown, name) is not None
    assert dir(lookdown) == sorted(lookdown.__all__)
    assert set(lookdown._HOMES) | {"__version__"} == set(lookdown.__all__)
    assert not hasattr(lookdown, "GausianLikelihoodRatio")


def test_no_two_modules_of_the_product_have_one_name() -> None:
    """Commands, routes and sources are named after what they are for; everything else has a name of its own."""
    modules: dict[str, list[str]] = {}
    for path in product_files():
        if (
            path.name != "__init__.py"
            and path.relative_to(SOURCE).parts[0] != "cli"
            and path.parent.name not in ("routes", "sources")
        ):
            modules.setdefault(path.stem, []).append(path.relative_to(SOURCE).as_posix())
    assert not {name: paths for name, paths in modules.items() if len(paths) > 1}


def test_no_two_public_classes_of_the_product_have_one_name() -> None:
    classes: dict[str, list[str]] = {}
    for path in product_files():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes.setdefault(node.name, []).append(path.relative_to(SOURCE).as_posix())
    assert not {name: paths for name, paths in classes.items() if len(paths) > 1}


def test_names_are_not_left_to_their_context() -> None:
    vague = {"told", "found", "made", "some", "place", "places"}
    used = {
        f"{path.relative_to(SOURCE)}: {name}"
        for path in product_files()
        for name in names_of(path.read_text())
        if name in vague
    }
    assert not used


def product_files() -> list[Path]:
    """Every module but those of the laboratory."""
    return [path for path in SOURCE.rglob("*.py") if path.relative_to(SOURCE).parts[0] != "lab"]


def names_of(source: str) -> set[str]:
    """Variables, arguments, functions, classes and attributes that a file gives a name to."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
    return {name.lstrip("_") for name in names}
