from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from tests.cli.reference import documented_keys
from typer.testing import CliRunner

from lookdown.cli import app
from lookdown.errors import OutputError
from lookdown.lab.demo import DemoReport


def test_its_document_has_the_keys_that_the_page_names() -> None:
    assert documented_keys("lookdown demo") == {field.name for field in fields(DemoReport)}


@pytest.mark.parametrize("name", ["demo", "demo/world"])
def test_what_is_not_a_demo_is_left_alone(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("mine")
    found = CliRunner().invoke(app, ["demo", "-o", str(tmp_path / "demo")])
    assert isinstance(found.exception, OutputError)
    assert "name a" in str(found.exception)
    assert "with -o" in str(found.exception)
    assert file.read_text() == "mine"
