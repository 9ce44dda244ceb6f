"""Labels, metrics, and the jobs that estimate new ones; none of these puts its metric into use."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Body, Path
from fastapi.responses import JSONResponse, Response

from lookdown.gallery import Learnt
from lookdown.progress import Progress
from lookdown.service.answers import metrics
from lookdown.service.jobs import Job as JobRecord
from lookdown.service.problems import unknown
from lookdown.service.routes import PROBLEMS
from lookdown.service.schemas import (
    AdaptRequest,
    Job,
    JobStarted,
    Labelled,
    LabelsRequest,
    Metrics,
    NothingRequest,
    UseRequest,
)
from lookdown.service.served_gallery import GalleryDependency, needs

__all__ = ["router"]

router = APIRouter(prefix="/v1", tags=["learning"])

_LEARN = [needs("learn")]
Nothing = Annotated[NothingRequest | None, Body()]


@router.put("/labels", response_model=Labelled, dependencies=_LEARN, responses=PROBLEMS)
async def label(told: LabelsRequest, served: GalleryDependency) -> Response:
    """Say what chips show; the answer holds what was known before, which undoes it."""
    names = [*told.labels, *told.background]

    def work() -> Response:
        served.check_chips(names)
        if not names:
            return JSONResponse({"changed": 0, "before": {}})
        before = served.gallery.label(
            [*told.labels], [*told.labels.values()], background=told.background, marked=told.marked
        )
        marks = {name: mark._asdict() for name, mark in before.items()}
        return JSONResponse({"changed": len(names), "before": marks})

    return await served.change(work)


@router.get("/metrics", response_model=Metrics, responses=PROBLEMS)
async def known(served: GalleryDependency) -> Response:
    """Return the metrics of the gallery, and which is in use."""
    return await served.reading.run(lambda: JSONResponse(metrics(served.gallery)))


@router.put("/metrics/current", response_model=Metrics, dependencies=_LEARN, responses=PROBLEMS)
async def use(told: UseRequest, served: GalleryDependency) -> Response:
    """Search by another metric from now on."""

    def work() -> Response:
        served.check_shelved(told.name)
        served.gallery.use(told.name)
        return JSONResponse(metrics(served.gallery))

    return await served.change(work)


@router.delete("/metrics/{name}", status_code=204, response_class=Response, dependencies=_LEARN, responses=PROBLEMS)
async def forget(name: Annotated[str, Path(max_length=100)], served: GalleryDependency) -> Response:
    """Drop a metric; not the one in use, and not the first."""

    def work() -> None:
        served.check_shelved(name)
        served.gallery.forget(name)

    await served.change(work)
    return Response(status_code=204)


@router.post("/adapt", status_code=202, response_model=JobStarted, dependencies=_LEARN, responses=PROBLEMS)
async def adapt(served: GalleryDependency, told: Annotated[AdaptRequest | None, Body()] = None) -> Response:
    """Estimate a metric anew on what the gallery holds."""
    how = told or AdaptRequest()
    options: dict[str, Any] = {"clusters": how.clusters or "auto", "method": how.method, "labels": how.labels}

    def work(progress: Progress) -> Learnt:
        return served.gallery.adapt(**options, use=False, progress=progress)

    return _started(served.start("adapt", work))


@router.post("/teach", status_code=202, response_model=JobStarted, dependencies=_LEARN, responses=PROBLEMS)
async def teach(served: GalleryDependency, told: Nothing = None) -> Response:
    """Estimate a metric with the labels that were given so far."""
    return _started(served.start("teach", lambda progress: served.gallery.teach([], [], use=False, progress=progress)))


@router.post("/calibrate", status_code=202, response_model=JobStarted, dependencies=_LEARN, responses=PROBLEMS)
async def calibrate(served: GalleryDependency, told: Nothing = None) -> Response:
    """Measure what scores of the metric in use are worth, on labelled chips."""
    metric = served.gallery.metric  # the one that was seen when this was asked for, whatever is in use by then
    return _started(served.start("calibrate", lambda _: served.gallery.calibrate(metric=metric, use=False)))


@router.get("/jobs/{id}", response_model=Job, responses=PROBLEMS)
async def job(id: Annotated[str, Path(max_length=100)], served: GalleryDependency) -> Response:
    """Return how far a job is, and what came of it."""
    found = served.jobs.get(id)
    if found is None:
        raise unknown("job", id)
    return JSONResponse(asdict(found))


def _started(job: JobRecord) -> Response:
    return JSONResponse({"id": job.id, "kind": job.kind, "status": job.status}, 202)
