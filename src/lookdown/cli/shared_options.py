"""Options that several commands have, and the one JSON document that `--json` prints."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Annotated, Any, Literal

import typer

__all__ = ["AsJson", "Clusters", "Engine", "Method", "Seed", "Uri", "Workers", "print_json"]

AsJson = Annotated[bool, typer.Option("--json", help="print the result as one JSON document, and nothing else")]
Engine = Annotated[
    Literal["auto", "exact", "ivf", "milvus"],
    typer.Option(help="what searches: this process in its memory (auto, exact, ivf), or a Milvus server"),
]
Uri = Annotated[
    str | None,
    typer.Option(help="address of the Milvus server, http://host:19530; its token comes from the environment"),
]
Workers = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS", help="machines that do the work: a Ray cluster, ray://host:10001, or `ray` for this machine"
    ),
]
Clusters = Annotated[
    int | None, typer.Option(help="number of kinds, plus one for the background; estimated unless given")
]
Method = Annotated[
    Literal["auto", "cplfpa"], typer.Option(help="the method that was best on validation, or the paper's Algorithm 3")
]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="seed of the random numbers")]


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
