"""The first five minutes of a new user: a clone, and the two commands of the README."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

import pytest

pytestmark = pytest.mark.install

ROOT = Path(__file__).parents[1]
# As a stranger's shell has them: nothing of this environment but what pip needs to find packages.
BARE = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("VIRTUAL_ENV", "PYTHON", "LOOKDOWN", "MAKE", "MFLAGS", "OMP_", "OPENBLAS_", "MKL_", "COV_"))
} | {"PATH": "/usr/local/bin:/usr/bin:/bin"}


def typed(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, env=BARE, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


def commands() -> list[str]:
    text = (ROOT / "README.md").read_text()
    block = re.search(r"## Two commands.*?```\n(.*?)```", text, flags=re.DOTALL)
    assert block is not None
    return block[1].splitlines()


SERVE = ".venv/bin/lookdown serve demo/gallery"


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone in which the first command was typed; what that installs is the one clean environment of the suite."""
    folder = tmp_path_factory.mktemp("first") / "lookdown"
    typed(ROOT, "git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(folder))
    told = typed(folder, "make", "demo", f"PYTHON={sys.executable}")
    assert f"  {SERVE}\n" in told  # to be typed as it stands
    return folder


def test_the_readme_has_two_commands_and_the_one_that_shows_what_they_left() -> None:
    assert commands() == ["make demo", "make test"]
    assert f"`{SERVE}`" in (ROOT / "README.md").read_text()


def test_the_page_shows_what_the_run_itself_comes_to(clone: Path) -> None:
    text = (clone / "demo" / "index.html").read_text()
    shown = re.search(r"GLRT loss</th><td[^>]*>([\d.]+) .*?</td><td[^>]*>([\d.]+) ", text)
    assert shown is not None
    means = json.loads(typed(clone, ".venv/bin/lookdown", "evaluate", "demo/run", "--json"))["means"]
    for figure, metric in zip(shown.groups(), ("cosine", "glrt"), strict=True):
        assert abs(float(figure) - 100 * means[metric]["mean_average_precision"]["value"]) < 0.06
    assert 0.4 < float(shown[2]) / 100 < 0.95  # it has learnt, and the world is not too easy


def test_the_gallery_that_the_demo_has_left_is_served(clone: Path) -> None:
    command = [*SERVE.split(), "--port", "0"]
    with subprocess.Popen(command, cwd=clone, env=BARE, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = re.search(r"http://127\.0\.0\.1:\d+", server.stdout.readline())
            assert address is not None
            with build_opener(ProxyHandler({})).open(address[0], timeout=60) as answer:  # whatever proxy pip may need
                assert b"lookdown" in answer.read()
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(timeout=120)


def test_a_second_demo_uses_what_is_there(clone: Path) -> None:
    made = [clone / "demo" / name for name in ("world", "abroad", "run", "baselines", "gallery/records.lance")]
    before = {file: file.stat().st_mtime_ns for folder in made for file in folder.rglob("*") if file.is_file()}
    assert len(before) > 2000
    typed(clone, "make", "demo")
    after = {file: file.stat().st_mtime_ns for folder in made for file in folder.rglob("*") if file.is_file()}
    assert after == before
    assert "with what was there from before" in (clone / "demo" / "index.html").read_text()


def test_the_wheel_alone_runs_the_quickstart(clone: Path, tmp_path: Path) -> None:
    """Outside the repository: the page, the recipes and the synthetic world are in the wheel.

    It takes the place of the clone in the clone's environment, which holds what a user installs and nothing else.
    """
    typed(clone, sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path))
    wheel = next(tmp_path.glob("*.whl"))
    python = str(clone / ".venv/bin/python")
    typed(tmp_path, python, "-m", "pip", "uninstall", "--yes", "lookdown")
    constraints = str(clone / "constraints.txt")
    typed(tmp_path, python, "-m", "pip", "install", "--constraint", constraints, f"{wheel}[training,service]")
    for page in ("README.md", "docs/quickstart.md"):
        here = tmp_path / Path(page).stem
        here.mkdir()
        blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)
        assert blocks
        (here / "quickstart.py").write_text("\n".join(blocks))
        typed(here, python, "quickstart.py")
    changes = "stage1.epochs=1", "stage2.epochs=1", "network.size=32"
    small = f"chips=14, abroad=12, size=32, scene_size=640, changes={changes}"
    story = (
        "from pathlib import Path; from lookdown.lab.demo import *;"
        f"print(run_demo(Path('demo'), DemoScale({small})).page)"
    )
    assert typed(tmp_path, python, "-c", story).strip() == "demo/index.html"
    code = "from pathlib import Path; import lookdown.service; print(Path(lookdown.service.__file__).parent)"
    service = Path(typed(tmp_path, python, "-c", code).strip())
    assert clone / ".venv" / "lib" in service.parents, "it is not the one of the checkout"
    assert (service / "page" / "index.html").is_file()
