"""The option that says which machines do the work, the same in every command."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["Workers"]

Workers = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS", help="machines that do the work: a Ray cluster, ray://host:10001, or `ray` for this machine"
    ),
]
