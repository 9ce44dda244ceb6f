"""lookdown search: find objects that look like an image."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lookdown.cli.json_output import AsJson
from lookdown.cli.shared_options import Engine, Uri


def search(
    gallery: Annotated[Path, typer.Argument(help="folder written by `lookdown index`")],
    query: Annotated[list[str], typer.Argument(help="images of what to find, or ids of chips in the gallery")],
    k: Annotated[int | None, typer.Option("-k", min=1, help="how many results; 50 unless a rate is given")] = None,
    false_alarm_rate: Annotated[
        float | None, typer.Option("--false-alarm-rate", help="instead of -k: all that this rate accepts, 1e-3 say")
    ] = None,
    unlike: Annotated[list[str] | None, typer.Option(help="what it should not be like; repeatable")] = None,
    label: Annotated[list[str] | None, typer.Option(help="search only chips of this class; repeatable")] = None,
    scene: Annotated[list[str] | None, typer.Option(help="only of this scene; repeatable")] = None,
    sensor: Annotated[list[str] | None, typer.Option(help="only of this sensor; repeatable")] = None,
    since: Annotated[str | None, typer.Option(help="only since then, ISO 8601")] = None,
    until: Annotated[str | None, typer.Option(help="only until then; a day is meant to its end")] = None,
    box: Annotated[str | None, typer.Option(help="only within west,south,east,north in degrees")] = None,
    polygon: Annotated[str | None, typer.Option(help="only within a polygon, WKT in degrees")] = None,
    metric: Annotated[
        str | None, typer.Option(help="another metric of the gallery, see `lookdown gallery metrics`, or cosine")
    ] = None,
    prior: Annotated[float, typer.Option(help="share of the archive that may be of this kind")] = 0.01,
    turned: Annotated[
        bool, typer.Option("--turned", help="look at the example in four turns, so that its heading does not matter")
    ] = False,
    overlap: Annotated[
        float, typer.Option(min=0, max=1, help="windows of a scene that share more are one hit; 1 keeps all")
    ] = 0.2,
    expand: Annotated[int, typer.Option(min=0, help="so many best hits join the query, for a second search")] = 0,
    rerank: Annotated[bool, typer.Option("--rerank", help="order hits by k-reciprocal neighbours")] = False,
    engine: Engine = "auto",
    uri: Uri = None,
    as_json: AsJson = False,
    csv: Annotated[Path | None, typer.Option(help="also write a table, FILE.csv")] = None,
    geojson: Annotated[Path | None, typer.Option(help="also write a map layer, FILE.geojson, for QGIS, say")] = None,
    geoparquet: Annotated[Path | None, typer.Option(help="also write a map layer, FILE.parquet")] = None,
    html: Annotated[Path | None, typer.Option(help="also write a contact sheet, FILE.html")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace files that are there")] = False,
) -> None:
    """Find objects that look like an image."""
    from shutil import get_terminal_size

    from lookdown.errors import InputError
    from lookdown.gallery import Gallery, Where
    from lookdown.gallery.results.json_text import to_json
    from lookdown.gallery.results.terminal_table import table
    from lookdown.gallery.results.writing import check_path, write
    from lookdown.gallery.search.engines import chosen_engine

    wanted = {".csv": csv, ".geojson": geojson, ".parquet": geoparquet, ".html": html}
    files = [(suffix, path) for suffix, path in wanted.items() if path is not None]
    for suffix, path in files:
        if check_path(path, overwrite=overwrite) != suffix:
            raise InputError(f"{path} should end in {suffix}")
    if box and polygon:
        raise InputError("give --box or --polygon, not both")
    where = Where(
        label=label or None,
        scene=scene or None,
        sensor=sensor or None,
        since=since,
        until=until,
        within=box or polygon,
    )
    opened = Gallery.open(gallery, engine=chosen_engine(engine, uri))
    results = opened.search(
        query,
        k,
        counter_examples=unlike or (),
        where=where,
        false_alarm_rate=false_alarm_rate,
        metric=metric,
        prior=prior,
        turned=turned,
        overlap=None if overlap >= 1 else overlap,
        expand=expand,
        rerank=rerank,
    )
    if opened.embedded_by is not None:
        typer.echo(f"embedded by {opened.embedded_by}", err=True)
    typer.echo(to_json(results) if as_json else table(results, width=get_terminal_size().columns))
    for _, path in files:
        for remark in write(results, path, overwrite=overwrite, query_thumbnail=opened.picture(query[0])):
            typer.echo(remark, err=True)
