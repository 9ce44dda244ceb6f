"""lookdown search: find objects that look like an image."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lookdown.cli.shared_options import AsJson, Engine, Uri


def search(
    gallery: Annotated[Path, typer.Argument(help="folder written by `lookdown index`")],
    examples: Annotated[
        list[str] | None, typer.Argument(help="images of what to find, or ids of chips in the gallery")
    ] = None,
    kind: Annotated[
        str | None, typer.Option(help="instead of examples: a kind that the metric knows, such as a label of yours")
    ] = None,
    k: Annotated[int | None, typer.Option("-k", min=1, help="how many hits; 50 unless a rate is given")] = None,
    false_alarm_rate: Annotated[
        float | None, typer.Option("--false-alarm-rate", help="instead of -k: all that this rate accepts, 1e-3 say")
    ] = None,
    counter_examples: Annotated[
        list[str] | None, typer.Option("--counter-example", help="what hits should not be like; repeatable")
    ] = None,
    label: Annotated[list[str] | None, typer.Option(help="search only chips of this class; repeatable")] = None,
    labelled: Annotated[bool | None, typer.Option(help="only chips with a label, or without")] = None,
    background: Annotated[bool | None, typer.Option(help="only chips that show no object, or all others")] = None,
    scene: Annotated[list[str] | None, typer.Option(help="only of this scene; repeatable")] = None,
    sensor: Annotated[list[str] | None, typer.Option(help="only of this sensor; repeatable")] = None,
    since: Annotated[str | None, typer.Option(help="only since then, ISO 8601")] = None,
    until: Annotated[str | None, typer.Option(help="only until then; a day is included to its end")] = None,
    box: Annotated[str | None, typer.Option(help="only within west,south,east,north in degrees")] = None,
    polygon: Annotated[str | None, typer.Option(help="only within a polygon, WKT in degrees")] = None,
    metric: Annotated[
        str | None, typer.Option(help="another metric of the gallery, see `lookdown gallery metrics`, or cosine")
    ] = None,
    prior: Annotated[float, typer.Option(help="share of the archive assumed to be of this kind")] = 0.01,
    turned: Annotated[
        bool, typer.Option("--turned", help="embed images in four turns, so that their heading does not matter")
    ] = False,
    overlap: Annotated[
        float, typer.Option(min=0, max=1, help="windows of a scene that share more are one hit; 1 keeps every window")
    ] = 0.2,
    expand: Annotated[int, typer.Option(min=0, help="how many best hits join the examples for a second search")] = 0,
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
    from lookdown.gallery import Gallery, SearchRequest, Where
    from lookdown.gallery.results.json_text import to_json
    from lookdown.gallery.results.terminal_table import table
    from lookdown.gallery.results.write import check_path, write
    from lookdown.gallery.search.engines.engine import chosen_engine

    if not examples and kind is None:
        raise typer.BadParameter("give at least one, or --kind", param_hint="EXAMPLES")
    paths = {".csv": csv, ".geojson": geojson, ".parquet": geoparquet, ".html": html}
    files = {suffix: path for suffix, path in paths.items() if path is not None}
    for suffix, path in files.items():
        if check_path(path, overwrite=overwrite) != suffix:
            raise InputError(f"{path} should end in {suffix}")
    request = SearchRequest(
        examples=examples or (),
        kind=kind,
        counter_examples=counter_examples or (),
        k=k,
        false_alarm_rate=false_alarm_rate,
        where=Where(
            label=label or None,
            labelled=labelled,
            background=background,
            scene=scene or None,
            sensor=sensor or None,
            since=since,
            until=until,
            box=box,
            polygon=polygon,
        ),
        metric=metric,
        prior=prior,
        turned=turned,
        overlap=overlap,
        expand=expand,
        rerank=rerank,
    )
    opened = Gallery.open(gallery, engine=chosen_engine(engine, uri))
    results = opened.answer(request)
    if opened.embedded_by is not None:
        typer.echo(f"embedded by {opened.embedded_by}", err=True)
    typer.echo(to_json(results) if as_json else table(results, width=get_terminal_size().columns))
    for path in files.values():
        picture = opened.picture(examples[0]) if examples else None
        for remark in write(results, path, overwrite=overwrite, query_thumbnail=picture):
            typer.echo(remark, err=True)
