"""What the gallery holds, in numbers and as a map; the health of the service, and its metrics for Prometheus."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse, Response

from lookdown.service.answers import stats
from lookdown.service.embedding_map import points, sample
from lookdown.service.problems import PROBLEMS, Responses
from lookdown.service.schemas import EmbeddingMapAnswer, HealthAnswer, Id, StatsAnswer
from lookdown.service.served_gallery import GalleryDependency, known_rows

__all__ = ["router"]

router = APIRouter(tags=["overview"])

_PLAIN_TEXT: Responses = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **PROBLEMS}


@router.head("/healthz", include_in_schema=False)
@router.get("/healthz", response_model=HealthAnswer)
async def health() -> Response:
    """Say that the service is up."""
    return JSONResponse({"status": "ok"})


@router.get("/metrics", response_class=Response, responses=_PLAIN_TEXT)
async def prometheus(served: GalleryDependency) -> Response:
    """Return counts and times of requests, for Prometheus."""
    return Response(served.prometheus.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


@router.get("/v1/stats", response_model=StatsAnswer, responses=PROBLEMS)
async def overview(served: GalleryDependency) -> Response:
    """Return what the gallery holds, and what this service allows."""
    return await served.reading.run(lambda: JSONResponse(stats(served.gallery, served.settings)))


@router.get("/v1/embedding-map", response_model=EmbeddingMapAnswer, responses=PROBLEMS)
async def embedding_map(
    served: GalleryDependency,
    limit: Annotated[int, Query(ge=0, le=5_000)] = 3_000,
    ids: Annotated[list[Id] | None, Query(max_length=1_000, description="these chips instead of a sample")] = None,
) -> Response:
    """Return chips with their positions in the plane of the first two principal components of the embeddings."""

    def work() -> Response:
        snapshot = served.gallery.snapshot
        rows = sample(len(snapshot), limit) if ids is None else known_rows(snapshot, ids)
        return JSONResponse({"points": points(snapshot, served.plane(), rows)})

    return await served.searching.run(work)
