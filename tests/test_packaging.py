"""What a user meets before any mathematics: installation, the command, errors, licences."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.tiers import TIERS

from lookdown import errors

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def requirements() -> set[str]:
    """Names of everything that the project asks for, extras included."""
    lines = [*PROJECT["dependencies"], *(line for extra in PROJECT["optional-dependencies"].values() for line in extra)]
    return {re.split(r"[<>=!~\[ ]", line)[0].lower() for line in lines} - {"lookdown"}  # an extra may take in others


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=120, cwd="/")


def test_the_constraints_pin_every_requirement_and_torch_first() -> None:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and line[0] != "#"]
    pins = dict(line.split("==") for line in lines)
    assert lines[0] == "torch==2.13.0"
    assert requirements() <= {name.lower() for name in pins}


def test_every_requirement_has_its_terms_written_down() -> None:
    page = (ROOT / "docs" / "licences.md").read_text().lower()
    assert not [name for name in requirements() if f"| {name} |" not in page]


def test_the_core_is_light() -> None:
    core = {re.split(r"[<>=]", line)[0] for line in PROJECT["dependencies"]}
    assert core == {"numpy", "scipy", "scikit-learn", "threadpoolctl", "torch", "safetensors"}


def test_the_module_runs_and_says_its_version() -> None:
    assert run("-m", "lookdown", "--version").stdout.startswith(f"lookdown {PROJECT['version']}")
    shown = run("-m", "lookdown", "doctor")
    assert shown.returncode == 0
    assert "scikit-learn" in shown.stdout


def test_help_comes_before_anything_heavy_is_imported() -> None:
    code = (
        "import sys, lookdown.cli;"
        "heavy = {'torch', 'sklearn', 'scipy', 'numpy', 'importlib.metadata', 'rich.progress'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    assert run("-c", code).stderr == ""


def test_a_missing_extra_is_one_sentence_with_the_remedy() -> None:
    code = "import sys; sys.modules['typer'] = None; from lookdown.__main__ import main; main()"
    shown = run("-c", code)
    assert shown.returncode == 1
    assert shown.stderr == (
        "lookdown: the command line needs packages that are not installed; run: pip install 'lookdown[cli]'\n"
    )


@pytest.mark.parametrize("module", ["pyarrow", "PIL", "rasterio", "shapely", "defusedxml"])
def test_a_command_without_its_extra_is_one_sentence_too(module: str, tmp_path: Path) -> None:
    (tmp_path / "Annotations").mkdir()
    code = (
        f"import sys; sys.modules[{module!r}] = None;"
        f"sys.argv = ['lookdown', 'prepare', 'voc', {str(tmp_path)!r}, '-o', {str(tmp_path / 'out')!r}];"
        "from lookdown.__main__ import main; main()"
    )
    shown = run("-c", code)
    assert shown.returncode == 1
    assert shown.stderr == (
        "lookdown: this command needs packages that are not installed; run: pip install 'lookdown[chips]'\n"
    )


def test_another_missing_module_is_not_hidden() -> None:
    code = "import sys; sys.modules['lookdown.cli'] = None; from lookdown.__main__ import main; main()"
    assert "ModuleNotFoundError" in run("-c", code).stderr


def test_errors_a_user_can_meet_have_one_root() -> None:
    found = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if not issubclass(kind, Warning)]
    assert len(found) > 5
    assert all(issubclass(kind, errors.LookdownError) for kind in found)
    public = {name for name in vars(errors) if not name.startswith("_")} - {"annotations"}
    assert public == {name for name, _ in inspect.getmembers(errors, inspect.isclass)}


def test_a_lookdown_error_is_told_in_one_line_and_others_are_not_swallowed() -> None:
    code = (
        "import lookdown.cli, lookdown.errors as e\n"
        "def fail(**_): raise e.InputError('row 3 of boxes.csv has no path; add one')\n"
        "lookdown.cli.app = fail\n"
        "from lookdown.__main__ import main; main()"
    )
    assert run("-c", code).stderr == "lookdown: row 3 of boxes.csv has no path; add one\n"


def test_the_make_file_offers_what_the_guide_names() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    targets |= {f"test-{tier}" for tier in TIERS}
    named = set(re.findall(r"`make ([a-z-]+)`", (ROOT / "CONTRIBUTING.md").read_text()))
    assert {"check", "test", "test-all", "bench", "build"} <= named <= targets


def pages() -> Iterator[Any]:
    """Yield pages of the site; what README and quickstart say is run with the wheel alone, in test_first_minutes.py."""
    for page in sorted(ROOT.glob("docs/**/*.md")):
        name = page.relative_to(ROOT).as_posix()
        if name == "docs/quickstart.md":
            continue
        yield pytest.param(name, marks=pytest.mark.export) if "exporting import" in page.read_text() else name


@pytest.mark.parametrize("page", [*pages()])
def test_code_in_the_documentation_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)
    monkeypatch.chdir(tmp_path)
    scope: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, page, "exec", dont_inherit=True), scope)  # as a reader runs it, without our __future__
