"""Options that say what searches a gallery, the same in every command."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

__all__ = ["Engine", "Uri"]

Engine = Annotated[
    Literal["auto", "exact", "ivf", "milvus"],
    typer.Option(help="what searches: memory of this process, or a Milvus server"),
]
Uri = Annotated[
    str | None,
    typer.Option(help="of the Milvus server, http://host:19530; its token is read from the environment"),
]
