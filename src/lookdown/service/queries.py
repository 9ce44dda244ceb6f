"""A search as the API is asked for it: what was sent, turned into one question to the gallery."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from fastapi import Request
from numpy.typing import NDArray
from pydantic import ValidationError
from starlette.datastructures import UploadFile

from lookdown.errors import InputError
from lookdown.gallery import Results, Where
from lookdown.gallery.search.examples import Example
from lookdown.service.answers import named, search_answer
from lookdown.service.pictures import stored
from lookdown.service.problems import Problem, sentence_of
from lookdown.service.schemas import SearchRequest
from lookdown.service.served_gallery import ServedGallery

__all__ = ["Found", "Sent", "answer", "search", "sent"]

Views = NDArray[np.float32]  # (n, d) of one object


@dataclass(frozen=True, slots=True)
class Sent:
    """What a client has sent."""

    asked: SearchRequest
    image: bytes | None


@dataclass(frozen=True, slots=True)
class Found:
    """What was found for it, and the query as the client may see it and send it again."""

    results: Results
    embedding: Views
    picture: bytes | None
    chip: str | None


async def sent(request: Request, limit: int) -> Sent:
    """Read a search: JSON, or a form with an image and the rest as JSON in `request`."""
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind == "application/json":
        return Sent(_asked(await request.body()), None)
    if kind != "multipart/form-data":
        raise Problem(415, "media-type", "send application/json, or multipart/form-data with an image")
    async with request.form(max_files=1, max_fields=2, max_part_size=limit) as form:
        image, asked = form.get("image"), form.get("request")
        if not isinstance(image, UploadFile):
            raise Problem(422, "input", "the form has no file `image`; add one, or send JSON")
        told = await asked.read(limit) if isinstance(asked, UploadFile) else asked
        return Sent(_asked(told or "{}"), await image.read())


async def search(served: ServedGallery, given: Sent, most: int) -> Found:
    """Embed what has to be, and search."""
    asked = given.asked
    if [asked.chip is not None, asked.embedding is not None, given.image is not None].count(True) != 1:
        raise Problem(422, "input", "say what to find: a chip, an embedding or an image, one of them")
    if names := [*([asked.chip] if asked.chip else []), *asked.positive, *asked.negative]:
        await served.reading.run(lambda: served.check_chips(names))  # before the network is asked
    where = _where(asked)
    picture, views = None, None
    if given.image is not None:
        upload = await served.read_image(given.image, turned=asked.turned)
        picture, views = upload.thumbnail, await served.embed(upload)
    elif asked.embedding is not None:
        views = _vectors(asked.embedding)
    return await served.searching.run(lambda: _search(served, asked, where, views, picture, most))


def answer(found: Found) -> Any:
    """Return it as JSON."""
    return search_answer(found.results, found.embedding, found.picture, found.chip)


def _search(
    served: ServedGallery,
    asked: SearchRequest,
    where: Where | None,
    views: Views | None,
    picture: bytes | None,
    most: int,
) -> Found:
    gallery = served.gallery
    snapshot = gallery.snapshot
    if asked.metric is not None:
        served.check_metric(asked.metric)
    example: Example
    if views is None:
        assert asked.chip is not None
        example = asked.chip
        row = snapshot.find([asked.chip])
        if row[0] >= 0:  # else the search says that it is gone
            views, picture = snapshot.embeddings(row), stored(snapshot, row)
    else:
        example = views
    options: dict[str, Any] = {} if asked.prior is None else {"prior": asked.prior}
    results = gallery.search(
        [example, *asked.positive],
        asked.k,
        counter_examples=asked.negative,
        where=where,
        false_alarm_rate=asked.false_alarm_rate,
        metric=asked.metric,
        most=None if asked.k is not None else most,
        files=False,
        **options,
    )
    if picture is not None and asked.chip is None:
        results = replace(results, query=results.query.replace("an embedding", "an image", 1))
    assert views is not None
    return Found(named(results), views, picture, asked.chip)


def _where(asked: SearchRequest) -> Where | None:
    if asked.where is None:
        return None
    told = asked.where.model_dump()
    return Where(**{name: value for name, value in told.items() if value is not None})


def _vectors(embedding: list[float] | list[list[float]]) -> Views:
    try:
        return np.atleast_2d(np.array(embedding, np.float32))
    except ValueError:
        raise InputError("views of one object have the same number of values each") from None


def _asked(content: str | bytes) -> SearchRequest:
    try:
        return SearchRequest.model_validate_json(content)
    except ValidationError as error:
        raise Problem(422, "input", sentence_of(error.errors())) from None
