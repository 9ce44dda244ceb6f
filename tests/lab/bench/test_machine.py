"""What a run was measured on is said."""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path

import pytest

from lookdown.lab.bench import machine
from lookdown.lab.bench.machine import this_machine, usable_cores


def test_the_machine_is_described() -> None:
    found = this_machine()
    assert 1 <= found.cores == usable_cores() <= (os.cpu_count() or 1)
    assert found.processor
    assert found.packages["numpy"] == version("numpy")
    for part in (
        found.processor,
        found.system,
        found.python,
        f"{found.cores} cores",
        "load was",
        f"numpy {version('numpy')}",
    ):
        assert part in found.sentence()


def test_a_processor_has_the_name_that_the_system_gives(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("vendor_id\t: x\nmodel name\t: Two Cores @ 2 GHz\nmodel name\t: other\n")
    assert machine._processor(cpuinfo) == "Two Cores @ 2 GHz"
    assert machine._processor(tmp_path / "none")


def test_what_is_not_known_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "PACKAGES", ("numpy", "no-such-package"))
    monkeypatch.setattr(machine, "_memory", lambda: None)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.delattr(os, "getloadavg", raising=False)
    found = this_machine()
    assert list(found.packages) == ["numpy"]
    assert found.cores == os.cpu_count()
    assert "memory" not in found.sentence()
    assert "load" not in found.sentence()
