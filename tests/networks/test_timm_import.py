"""timm imports whatever torchvision is installed, and other failures of it are not hidden."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import lookdown

MODULE = Path(lookdown.__file__).parent / "networks" / "backbones.py"


def run_module(then: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the file alone, in a process of its own; what lies in `folder` comes before what is installed."""
    first = [str(folder)] if folder else []
    code = f"import runpy, sys; sys.path[:0] = {first}; g = runpy.run_path({str(MODULE)!r}); {then}"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)


def stand_in(folder: Path, body: str) -> Path:
    (folder / "torchvision.py").write_text(body)
    (folder / "timm.py").write_text("")
    return folder


def test_timm_and_what_it_needs_of_torchvision_import() -> None:
    shown = run_module("import torchvision.transforms, timm.data; assert g['timm'].is_model('resnet18')")
    assert shown.returncode == 0, shown.stderr


def test_a_torchvision_that_works_is_left_alone(tmp_path: Path) -> None:
    shown = run_module("assert not g['_declared']", stand_in(tmp_path, ""))
    assert shown.returncode == 0, shown.stderr


def test_a_torchvision_without_its_operators_is_imported_again_with_them_declared(tmp_path: Path) -> None:
    body = (
        "import torch\n"
        "if not hasattr(torch.ops.torchvision, 'nms'): raise RuntimeError('operator torchvision::nms does not exist')"
    )
    shown = run_module("assert len(g['_declared']) == 1; assert 'torchvision' in sys.modules", stand_in(tmp_path, body))
    assert shown.returncode == 0, shown.stderr


def test_another_failure_is_not_hidden(tmp_path: Path) -> None:
    shown = run_module("", stand_in(tmp_path, "raise RuntimeError('the driver is too old')"))
    assert shown.returncode == 1
    assert "RuntimeError: the driver is too old" in shown.stderr
