"""lookdown serve: a gallery over HTTP, with a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from lookdown.cli.shared_options import Engine, Uri


def serve(
    gallery: Annotated[Path, typer.Argument(help="folder written by `lookdown index`")],
    host: Annotated[
        str, typer.Option(help="address to listen at; if other machines can reach it, a token is needed")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="port to listen at; 0 for a free one")] = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="LOOKDOWN_TOKEN",
            show_envvar=True,
            help="token that clients must send; others can see a command line, so the variable is safer",
        ),
    ] = None,
    access: Annotated[
        Literal["read", "learn", "write"],
        typer.Option(help="what clients may do: search; also label and adapt; also add and remove chips"),
    ] = "learn",
    hosts: Annotated[
        list[str] | None, typer.Option("--allow-host", help="another host name of this service; repeatable")
    ] = None,
    tile_url: Annotated[
        str | None, typer.Option(help="tiles of a map below the footprints, https://tiles.example/{z}/{x}/{y}.png")
    ] = None,
    upload_megabytes: Annotated[int, typer.Option(min=1, max=1024, help="largest file of an uploaded image")] = 16,
    megapixels: Annotated[int, typer.Option(min=1, max=300, help="largest size of an uploaded image")] = 25,
    rate: Annotated[float, typer.Option(min=0, help="requests per second of one client; 0 for no limit")] = 200.0,
    engine: Engine = "auto",
    uri: Uri = None,
) -> None:
    """Serve a gallery over HTTP, with a page to search it."""
    from lookdown.gallery import Gallery
    from lookdown.gallery.search.engines.engine import chosen_engine
    from lookdown.service.server import serve as run
    from lookdown.service.service_settings import ServiceSettings

    settings = ServiceSettings(
        host=host,
        port=port,
        token=token,
        access=access,
        hosts=tuple(hosts or ()),
        tile_url=tile_url,
        upload_bytes=upload_megabytes << 20,
        pixels=megapixels * 1_000_000,
        requests_a_second=rate,
    )
    opened = Gallery.open(gallery, engine=chosen_engine(engine, uri))
    # Load the network before the server starts, so that its errors end the command.
    network = f", embedding by {opened.embedded_by}," if opened.embedder is not None else ""
    contents = f"{gallery} with {len(opened):,} chips{network}"
    run(opened, settings, lambda address: typer.echo(f"{contents} is at {address} (press Ctrl+C to stop)"))
