"""The chips of the gallery: list and show them, and add or remove them if the service allows it."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any
from urllib.parse import unquote

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse, Response
from pydantic import ValidationError
from starlette.datastructures import UploadFile

from lookdown.service.answers import chips, redrawn, spread
from lookdown.service.problems import PROBLEMS, Problem, Responses, sentence_of
from lookdown.service.schemas import ChipAnswer, ChipBody, ChipsAnswer, NewChipAnswer, form_with_image
from lookdown.service.served_gallery import GalleryDependency, known_rows, needs

__all__ = ["router"]

router = APIRouter(prefix="/v1/chips", tags=["chips"], responses=PROBLEMS)

_FORM: dict[str, Any] = {
    "required": True,
    "content": form_with_image(
        label={"type": "string", "maxLength": 200},
        scene={"type": "string", "maxLength": 200},
        time={"type": "string", "maxLength": 40, "description": "ISO 8601"},
    ),
}
_THUMBNAIL: Responses = {
    200: {"content": {"image/jpeg": {"schema": {"type": "string", "format": "binary"}}}},
    304: {"description": "not modified"},
}
_WRITE = [needs("write")]


async def _id(request: Request) -> str:
    """Return the id in the path, which is percent-encoded up to here."""
    return unquote(request.path_params["id"])


ChipId = Annotated[str, Depends(_id)]
_ID_PARAMETER = {
    "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}]
}


@router.get("", response_model=ChipsAnswer)
async def list_chips(
    served: GalleryDependency,
    limit: Annotated[int, Query(ge=1, le=500)] = 48,
    offset: Annotated[int, Query(ge=0, le=1 << 31)] = 0,
) -> Response:
    """Return chips spread evenly over the archive, as a first look at it."""

    def work() -> Response:
        snapshot = served.gallery.snapshot
        rows = spread(len(snapshot), offset, limit)
        return JSONResponse({"chips": chips(snapshot, rows), "total": len(snapshot)})

    return await served.reading.run(work)


@router.get("/{id}/thumbnail", response_class=Response, responses=_THUMBNAIL, openapi_extra=_ID_PARAMETER)
async def thumbnail(served: GalleryDependency, id: ChipId, request: Request) -> Response:
    """Return the thumbnail of a chip."""

    def work() -> Response:
        snapshot = served.gallery.snapshot
        content = bytes(snapshot.read(known_rows(snapshot, [id]), ["thumbnail"])[0]["thumbnail"])
        # A digest of the content: another gallery at this address may have a chip of the same id.
        headers = {"ETag": f'"1-{hashlib.sha256(content).hexdigest()[:24]}"', "Cache-Control": "private, no-cache"}
        if headers["ETag"] in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        picture = redrawn(content)
        if picture is None:
            raise Problem(404, "no-picture", "this chip came without a picture")
        return Response(picture, media_type="image/jpeg", headers=headers)

    return await served.reading.run(work)


@router.get("/{id}", response_model=ChipAnswer, openapi_extra=_ID_PARAMETER)
async def read_chip(served: GalleryDependency, id: ChipId) -> Response:
    """Return the metadata of a chip."""

    def work() -> Response:
        snapshot = served.gallery.snapshot
        return JSONResponse(chips(snapshot, known_rows(snapshot, [id]))[0])

    return await served.reading.run(work)


@router.post(
    "",
    status_code=201,
    response_model=NewChipAnswer,
    responses={200: {"description": "it is in the gallery already", "model": NewChipAnswer}},
    dependencies=_WRITE,
    openapi_extra={"requestBody": _FORM},
)
async def add(request: Request, served: GalleryDependency) -> Response:
    """Add an image as a chip; its id is a digest of its bytes."""
    content, description = await _form(request, served.settings.json_bytes)
    embedding, thumbnail = await served.embed(content, turned=False)
    id = f"upload-{hashlib.sha256(content).hexdigest()[:24]}"
    row = description.model_dump() | {"id": id, "source": id, "thumbnail": thumbnail}

    def work() -> Response:
        embedder = served.gallery.embedder
        assert embedder is not None  # it has embedded the image
        added = served.gallery.add_embeddings([row], embedding, fingerprint=embedder.fingerprint)
        return JSONResponse({"id": id}, 201 if added.added else 200)

    return await served.change(work)


@router.delete("/{id}", status_code=204, response_class=Response, dependencies=_WRITE, openapi_extra=_ID_PARAMETER)
async def remove(served: GalleryDependency, id: ChipId) -> Response:
    """Remove a chip from the gallery; its source file stays."""

    def work() -> Response:
        served.check_chips([id])
        served.gallery.remove([id])
        return Response(status_code=204)

    return await served.change(work)


async def _form(request: Request, limit: int) -> tuple[bytes, ChipBody]:
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        raise Problem(415, "media-type", "send multipart/form-data with an image")
    async with request.form(max_files=1, max_fields=3, max_part_size=limit) as form:
        image = form.get("image")
        if not isinstance(image, UploadFile):
            raise Problem(422, "input", "the form has no file `image`; add one")
        fields = {name: value for name, value in form.items() if name != "image" and value != ""}
        try:
            return await image.read(), ChipBody.model_validate(fields)
        except ValidationError as error:
            raise Problem(422, "input", sentence_of(error.errors())) from None
