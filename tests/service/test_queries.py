"""From what was sent to one question to the gallery."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.service.galleries import encoded, pixels

from lookdown import Gallery, SearchRequest
from lookdown.errors import GalleryError, InputError
from lookdown.service.answers import search_answer
from lookdown.service.problems import Problem
from lookdown.service.queries import SearchForm, search
from lookdown.service.schemas import SearchBody
from lookdown.service.served_gallery import ServedGallery
from lookdown.service.service_settings import ServiceSettings


def found(gallery: Gallery, form: SearchForm) -> dict[str, Any]:
    served = ServedGallery(gallery, ServiceSettings())

    async def main() -> dict[str, Any]:
        async with served.running():
            results, example = await search(served, form, 10)
            return search_answer(results, example.embedding, example.thumbnail, example.chip)

    return asyncio.run(main())


def test_nothing_cannot_be_searched_for(made: Path) -> None:
    with pytest.raises(Problem, match="say what to find"):
        found(Gallery.open(made), SearchForm(SearchBody(counter_examples=["a"]), None))


def test_an_image_is_one_more_example_and_the_first(made: Path) -> None:
    gallery = Gallery.open(made)
    image, chip = encoded(pixels(0, 0)), gallery.snapshot.ids[3].as_py()
    answer = found(gallery, SearchForm(SearchBody(examples=[chip], k=5), image))
    wanted = gallery.search([image, chip], k=5)
    assert [hit["id"] for hit in answer["hits"]] == [hit.id for hit in wanted.hits]
    assert answer["query"] == wanted.query == "2 examples"
    assert answer["example"]["chip"] is None
    assert len(answer["example"]["embedding"]) == 8
    assert answer["example"]["thumbnail"].startswith("data:image/jpeg;base64,")


def test_a_file_is_never_opened_even_if_its_name_was_a_chip_a_moment_ago(
    gallery: Gallery, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.png"
    secret.write_bytes(encoded(pixels(0, 0)))
    monkeypatch.setattr(
        ServedGallery, "check_chips", lambda self, names: None
    )  # as if it had gone right after the check
    for body in (
        SearchBody(examples=[str(secret)]),
        SearchBody(examples=[[1.0] * 8, str(secret)]),
        SearchBody(examples=[[1.0] * 8], counter_examples=[str(secret)]),
    ):
        with pytest.raises(GalleryError, match="has no chip"):
            found(gallery, SearchForm(body, None))
    with pytest.raises(InputError, match="not a path"):
        gallery.answer(SearchRequest(examples=secret), files=False)
    assert len(gallery.search(str(secret), k=3)) == 3


def test_embeddings_of_one_object_are_one_example_and_returned(made: Path) -> None:
    views = np.random.default_rng(0).normal(size=(2, 8)).astype(np.float32)
    answer = found(Gallery.open(made), SearchForm(SearchBody(examples=[views.tolist()], k=2), None))
    np.testing.assert_allclose(answer["example"]["embedding"], views)
    assert (answer["query"], answer["example"]["thumbnail"]) == ("an embedding", None)
