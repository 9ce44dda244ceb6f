"""Options that several commands have: what searches a gallery, and which machines do the work."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

__all__ = ["Clusters", "Engine", "Method", "Seed", "Uri", "Workers"]

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
