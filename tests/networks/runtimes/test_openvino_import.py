"""Nothing is reported to anybody."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import lookdown

WATCH = """
import os, socket, sys
tried = []
def watched(*args): tried.append(args); raise OSError("no network")
os.register_at_fork(before=lambda: tried.append("a process"))
socket.socket.connect = socket.getaddrinfo = watched
from lookdown.networks.runtimes.openvino import openvino
import nncf
assert openvino.Core().available_devices
openvino.convert_model(sys.argv[1])
assert "openvino_telemetry.main" not in sys.modules
assert not tried, tried
"""


@pytest.mark.export
def test_neither_import_nor_conversion_reports_or_starts_a_process(tmp_path: Path) -> None:
    from tests.networks.exports import owner

    file = owner() / "exported" / "onnx" / "model.onnx"
    subprocess.run([sys.executable, "-W", "ignore", "-c", WATCH, str(file)], check=True)


def test_nobody_else_imports_openvino() -> None:
    source = Path(lookdown.__file__).parent
    found = {
        path.name for path in source.rglob("*.py") if re.search(r"^\s*(import|from) openvino\b", path.read_text(), re.M)
    }
    assert found == {"openvino.py"}


def test_the_stream_that_was_standard_error_at_the_import_is_closed_by_nobody() -> None:
    code = (
        "import io, logging.config, sys\n"
        "was = sys.stderr = io.StringIO()\n"
        "from lookdown.networks.runtimes.openvino import openvino\n"
        "sys.stderr = sys.__stderr__\n"
        "logging.config.dictConfig({'version': 1})\n"
        "assert not was.closed\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
