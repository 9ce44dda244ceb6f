"""A search over HTTP: the body of a request becomes a `SearchRequest` to the gallery."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from fastapi import Request
from numpy.typing import NDArray
from pydantic import ValidationError
from starlette.datastructures import UploadFile

from lookdown.errors import InputError
from lookdown.gallery import Results, SearchRequest, Where
from lookdown.gallery.search.request import Example
from lookdown.service.answers import redrawn, without_folders
from lookdown.service.problems import Problem, sentence_of, unknown
from lookdown.service.schemas import SearchBody
from lookdown.service.served_gallery import ServedGallery

__all__ = ["FirstExample", "SearchForm", "read_body", "search"]

Views = NDArray[np.float32]  # (n, d) of one object


@dataclass(frozen=True, slots=True)
class SearchForm:
    """The body of a request, and the image of its form."""

    body: SearchBody
    image: bytes | None


@dataclass(frozen=True, slots=True)
class FirstExample:
    """The first example as the client may see it and send it again."""

    embedding: Views
    thumbnail: bytes | None
    chip: str | None


async def read_body(request: Request, limit: int) -> SearchForm:
    """Read a search: JSON, or a form with an image and the rest as JSON in `request`."""
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind == "application/json":
        return SearchForm(_parsed(await request.body()), None)
    if kind != "multipart/form-data":
        raise Problem(415, "media-type", "send application/json, or multipart/form-data with an image")
    async with request.form(max_files=1, max_fields=2, max_part_size=limit) as form:
        image, body = form.get("image"), form.get("request")
        if not isinstance(image, UploadFile):
            raise Problem(422, "input", "the form has no file `image`; add one, or send JSON")
        content = await body.read(limit) if isinstance(body, UploadFile) else body
        return SearchForm(_parsed(content or "{}"), await image.read())


async def search(served: ServedGallery, form: SearchForm, most: int) -> tuple[Results, FirstExample]:
    """Embed the image, if there is one, and search.

    most: how many hits to return at most of those that a rate accepts.
    """
    body = form.body
    examples, counter_examples = _examples(body.examples), _examples(body.counter_examples)
    if not examples and form.image is None:
        raise Problem(422, "input", "say what to find: give `examples`, or send an image")
    if ids := [example for example in (*examples, *counter_examples) if isinstance(example, str)]:
        await served.reading.run(lambda: served.check_chips(ids))  # before the network is used
    where = None if body.where is None else Where(**body.where.model_dump())
    thumbnail = None
    if form.image is not None:
        image = await served.read_image(form.image, turned=body.turned)
        thumbnail = image.thumbnail
        examples.insert(0, await served.embed(image))
    fields = {name: getattr(body, name) for name in SearchBody.model_fields}
    request = SearchRequest(**fields | {"examples": examples, "counter_examples": counter_examples, "where": where})
    return await served.searching.run(lambda: _search(served, request, examples[0], thumbnail, most))


def _search(
    served: ServedGallery, request: SearchRequest, first: Example, thumbnail: bytes | None, most: int
) -> tuple[Results, FirstExample]:
    gallery = served.gallery
    snapshot = gallery.snapshot
    if isinstance(request.metric, str):
        served.check_metric(request.metric)
    results = gallery.answer(request, most=None if request.k is not None else most, files=False)
    if thumbnail is not None:
        results = replace(results, query=results.query.replace("an embedding", "an image", 1))
    chip = first if isinstance(first, str) else None
    if chip is not None:
        row = snapshot.find([chip])
        if row[0] < 0:  # the search saw a newer table
            raise unknown("chip", chip)
        first = snapshot.embeddings(row)
        thumbnail = redrawn(bytes(snapshot.read(row, ["thumbnail"])[0]["thumbnail"]))
    return without_folders(results), FirstExample(np.atleast_2d(np.asarray(first, np.float32)), thumbnail, chip)


def _examples(examples: list[Any]) -> list[Example]:
    """Return ids as they are, and embeddings as arrays."""
    try:
        return [one if isinstance(one, str) else np.array(one, np.float32) for one in examples]
    except ValueError:
        raise InputError("embeddings of one object must have the same number of values") from None


def _parsed(content: str | bytes) -> SearchBody:
    try:
        return SearchBody.model_validate_json(content)
    except ValidationError as error:
        raise Problem(422, "input", sentence_of(error.errors())) from None
