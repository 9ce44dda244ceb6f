"""One JSON document, whatever is in it."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

import pytest

from lookdown.cli.json_output import print_json


@dataclass(frozen=True)
class Part:
    path: Path
    share: float


def test_every_value_becomes_plain_json(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"parts": [Part(Path("a/船"), math.nan), Part(Path("bad\udcff"), 0.5)], 3: (True, None, math.inf)})
    shown = capsys.readouterr().out
    assert shown.isascii()
    assert shown.count("\n") == 1
    assert json.loads(shown) == {
        "parts": [{"path": "a/船", "share": None}, {"path": "bad\udcff", "share": 0.5}],
        "3": [True, None, None],
    }
