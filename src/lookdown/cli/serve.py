"""lookdown serve: a gallery behind HTTP, with a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from lookdown.cli.engine_options import Engine, Uri


def serve(
    gallery: Annotated[Path, typer.Argument(help="folder written by `lookdown index`")],
    host: Annotated[
        str, typer.Option(help="address to listen at; any but this machine's own needs a token")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0 takes one that is free")] = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="LOOKDOWN_TOKEN", show_envvar=True, help="what clients must show; others can read a command line"
        ),
    ] = None,
    access: Annotated[
        Literal["read", "learn", "write"],
        typer.Option(help="search only; also label and adapt; also add and remove chips"),
    ] = "learn",
    allow_host: Annotated[
        list[str] | None, typer.Option(help="another name that this service is called by; repeatable")
    ] = None,
    tile_url: Annotated[
        str | None, typer.Option(help="a map below the footprints, https://tiles.example/{z}/{x}/{y}.png")
    ] = None,
    upload_megabytes: Annotated[int, typer.Option(min=1, max=1024, help="of an image that is sent")] = 16,
    megapixels: Annotated[int, typer.Option(min=1, max=300, help="of an image that is sent")] = 25,
    rate: Annotated[float, typer.Option(min=0, help="requests a second that one client may send; 0 for any")] = 200.0,
    engine: Engine = "auto",
    uri: Uri = None,
) -> None:
    """Serve a gallery: a page to look, mark and search again, and HTTP."""
    from lookdown.gallery import Gallery
    from lookdown.gallery.search.engines import chosen_engine
    from lookdown.service.server import serve as run
    from lookdown.service.service_settings import ServiceSettings

    settings = ServiceSettings(
        host=host,
        port=port,
        token=token,
        access=access,
        hosts=tuple(allow_host or ()),
        tile_url=tile_url,
        upload_bytes=upload_megabytes << 20,
        pixels=megapixels * 1_000_000,
        requests_a_second=rate,
    )
    opened = Gallery.open(gallery, engine=chosen_engine(engine, uri))
    # Read it now: what is wrong with it is told here, and not by a server that has begun.
    network = f", embedding by {opened.embedded_by}," if opened.embedder is not None else ""
    run(
        opened,
        settings,
        lambda address: typer.echo(f"{gallery} with {len(opened):,} chips{network} is at {address} (Ctrl+C ends it)"),
    )
