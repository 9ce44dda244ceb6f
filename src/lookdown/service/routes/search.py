"""Search, and what scores are worth."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, NamedTuple

import numpy as np
from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response
from numpy.typing import NDArray
from pydantic import ValidationError
from starlette.datastructures import UploadFile

from lookdown.errors import InputError
from lookdown.gallery import Results, SearchRequest, Where
from lookdown.gallery.results.csv_text import to_csv
from lookdown.gallery.results.geojson import to_geojson
from lookdown.gallery.search.request import Example
from lookdown.service.answers import redrawn, search_answer, without_folders
from lookdown.service.problems import PROBLEMS, Problem, Responses, sentence_of
from lookdown.service.schemas import SearchAnswer, SearchBody, ThresholdsAnswer, form_with_image
from lookdown.service.served_gallery import GalleryDependency, ServedGallery, known_rows

__all__ = ["FirstExample", "router", "search"]

router = APIRouter(prefix="/v1", tags=["search"], responses=PROBLEMS)

JSON, GEOJSON, CSV = "application/json", "application/geo+json", "text/csv"
_REQUEST = {"$ref": "#/components/schemas/SearchBody"}
_BODY: dict[str, Any] = {
    "required": True,
    "content": {
        JSON: {"schema": _REQUEST},
        **form_with_image(request={"type": "string", "description": "a SearchBody as JSON", "examples": ['{"k": 20}']}),
    },
}
_ANSWERS: Responses = {
    200: {
        "description": "hits, best first; Accept chooses the form",
        "content": {GEOJSON: {"schema": {"type": "object"}}, CSV: {"schema": {"type": "string"}}},
    }
}


class FirstExample(NamedTuple):
    """The first example as the client may see it and send it again."""

    embedding: NDArray[np.float32]  # (views, d)
    thumbnail: bytes | None
    chip: str | None


@router.post("/search", response_model=SearchAnswer, responses=_ANSWERS, openapi_extra={"requestBody": _BODY})
async def find(request: Request, served: GalleryDependency) -> Response:
    """Find chips of the same kind as the examples: the k best, or all that a rate accepts."""
    kind, limits = _accepted_kind(request.headers.get("accept", "")), served.settings
    body, image = await _read_body(request, limits.json_bytes)
    results, example = await search(served, body, image, limits.hits if kind == JSON else limits.exported_hits)

    def work() -> Response:
        if kind == GEOJSON:
            return _file(to_geojson(results), GEOJSON, "hits.geojson", results)
        if kind == CSV:
            return _file(to_csv(results), "text/csv; charset=utf-8", "hits.csv", results)
        return JSONResponse(search_answer(results, *(example or (None, None, None))))

    return await served.reading.run(work)


@router.get("/thresholds", response_model=ThresholdsAnswer)
async def thresholds(
    served: GalleryDependency,
    metric: Annotated[str | None, Query(max_length=100, description="the one in use, if none is named")] = None,
) -> Response:
    """Return the score that goes with each false-alarm rate, and the distributions of scores."""

    def work() -> Response:
        name = served.gallery.metric if metric is None else metric
        served.check_metric(name)
        return JSONResponse(served.thresholds(name))

    return await served.searching.run(work)


async def search(
    served: ServedGallery, body: SearchBody, image: bytes | None, most: int
) -> tuple[Results, FirstExample | None]:
    """Embed the image, if there is one, and search; a kind is searched for without an example.

    most: how many hits to return at most of those that a rate accepts.
    """
    examples, counter_examples = _examples(body.examples), _examples(body.counter_examples)
    if not examples and image is None and body.kind is None:
        raise Problem(422, "input", "say what to find: give `examples` or a `kind`, or send an image")
    if ids := [example for example in (*examples, *counter_examples) if isinstance(example, str)]:
        await served.reading.run(lambda: served.check_chips(ids))  # before the network is used
    where = None if body.where is None else Where(**body.where.model_dump())
    thumbnail = None
    if image is not None:
        embedding, thumbnail = await served.embed(image, turned=body.turned)
        examples.insert(0, embedding)
    fields = {name: getattr(body, name) for name in SearchBody.model_fields}
    request = SearchRequest(**fields | {"examples": examples, "counter_examples": counter_examples, "where": where})

    def work() -> tuple[Results, FirstExample | None]:
        snapshot, first = served.gallery.snapshot, examples[0] if examples else None
        if body.metric is not None:
            served.check_metric(body.metric)
        results = without_folders(
            served.gallery.answer(request, most=None if body.k is not None else most, files=False)
        )
        if first is None:
            return results, None
        if isinstance(first, str):
            row = known_rows(snapshot, [first])  # the search may have seen a newer table
            stored = bytes(snapshot.read(row, ["thumbnail"])[0]["thumbnail"])
            return results, FirstExample(snapshot.embeddings(row), redrawn(stored), first)
        if thumbnail is not None:
            results = replace(results, query=results.query.replace("an embedding", "an image", 1))
        return results, FirstExample(np.atleast_2d(np.asarray(first, np.float32)), thumbnail, None)

    return await served.searching.run(work)


async def _read_body(request: Request, limit: int) -> tuple[SearchBody, bytes | None]:
    """Read a search: JSON, or a form with an image and the rest as JSON in `request`."""
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind == JSON:
        return _parsed(await request.body()), None
    if kind != "multipart/form-data":
        raise Problem(415, "media-type", "send application/json, or multipart/form-data with an image")
    async with request.form(max_files=1, max_fields=2, max_part_size=limit) as form:
        image = form.get("image")
        if not isinstance(image, UploadFile):
            raise Problem(422, "input", "the form has no file `image`; add one, or send JSON")
        return _parsed(str(form.get("request") or "{}")), await image.read()


def _parsed(content: str | bytes) -> SearchBody:
    try:
        return SearchBody.model_validate_json(content)
    except ValidationError as error:
        raise Problem(422, "input", sentence_of(error.errors())) from None


def _examples(examples: list[Any]) -> list[Example]:
    """Return ids as they are, and embeddings as arrays."""
    try:
        return [one if isinstance(one, str) else np.array(one, np.float32) for one in examples]
    except ValueError:
        raise InputError("embeddings of one object must have the same number of values") from None


def _accepted_kind(accept: str) -> str:
    """Return the media type that the client prefers, JSON by default."""
    accepted = []
    for position, part in enumerate(accept.lower().split(",")[:20]):
        kind, *parameters = (piece.strip() for piece in part.split(";"))
        quality = next((_number(text[2:]) for text in parameters if text.startswith("q=")), 1.0)
        if kind in (JSON, GEOJSON, CSV) and quality > 0:
            accepted.append((-quality, position, kind))
    return min(accepted)[2] if accepted else JSON


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _file(text: str, kind: str, name: str, results: Results) -> Response:
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "X-Lookdown-Accepted": str(results.accepted),
        "X-Lookdown-Truncated": "true" if results.truncated else "false",
    }
    return Response(text, media_type=kind, headers=headers)
