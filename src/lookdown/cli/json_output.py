"""The option `--json`, and the one JSON document that it prints."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Annotated, Any

import typer

__all__ = ["AsJson", "print_json"]

AsJson = Annotated[bool, typer.Option("--json", help="print the result as one JSON document, and nothing else")]


def print_json(content: object) -> None:
    """Print dataclasses, mappings and lists as JSON; NaN and infinite numbers become null."""
    typer.echo(json.dumps(_plain(content), allow_nan=False))


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
