"""Search, and what scores are worth."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response

from lookdown.gallery import Results
from lookdown.gallery.results.csv_text import to_csv
from lookdown.gallery.results.geojson import to_geojson
from lookdown.service.answers import search_answer
from lookdown.service.queries import read_body, search
from lookdown.service.routes import PROBLEMS, Responses, form_with_image
from lookdown.service.schemas import SearchAnswer, ThresholdsAnswer
from lookdown.service.served_gallery import GalleryDependency

__all__ = ["router"]

router = APIRouter(prefix="/v1", tags=["search"])

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
    },
    **PROBLEMS,
}


@router.post("/search", response_model=SearchAnswer, responses=_ANSWERS, openapi_extra={"requestBody": _BODY})
async def find(request: Request, served: GalleryDependency) -> Response:
    """Find chips of the same kind as the examples: the k best, or all that a rate accepts."""
    wanted = _form(request.headers.get("accept", ""))
    limits = served.settings
    form = await read_body(request, limits.json_bytes)
    results, example = await search(served, form, limits.hits if wanted == JSON else limits.exported_hits)
    if wanted == GEOJSON:
        text = await served.reading.run(lambda: to_geojson(results))
        return _file(text, GEOJSON, "hits.geojson", results)
    if wanted == CSV:
        text = await served.reading.run(lambda: to_csv(results))
        return _file(text, "text/csv; charset=utf-8", "hits.csv", results)
    answer = partial(search_answer, results, example.embedding, example.thumbnail, example.chip)
    return await served.reading.run(lambda: JSONResponse(answer()))


@router.get("/thresholds", response_model=ThresholdsAnswer, responses=PROBLEMS)
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


def _form(accept: str) -> str:
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
