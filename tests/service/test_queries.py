"""From what was sent to one question to the gallery."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
from tests.service.galleries import encoded, pixels

from lookdown import Gallery
from lookdown.errors import GalleryError, InputError
from lookdown.service.problems import Problem
from lookdown.service.queries import Sent, answer, search
from lookdown.service.schemas import SearchRequest
from lookdown.service.served_gallery import ServedGallery
from lookdown.service.service_settings import ServiceSettings


def found(gallery: Gallery, given: Sent) -> object:
    served = ServedGallery(gallery, ServiceSettings())

    async def main() -> object:
        async with served.running():
            return answer(await search(served, given, 10))

    return asyncio.run(main())


def test_nothing_or_two_things_cannot_be_searched_for(made: Path) -> None:
    gallery = Gallery.open(made)
    image = encoded(pixels(0, 0))
    for given in (
        Sent(SearchRequest(), None),
        Sent(SearchRequest(chip=gallery.snapshot.ids[0].as_py()), image),
        Sent(SearchRequest(embedding=[1.0] * 8), image),
    ):
        with pytest.raises(Problem, match="one of them"):
            found(gallery, given)


def test_a_file_is_never_opened_even_if_its_name_was_a_chip_a_moment_ago(
    gallery: Gallery, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.png"
    secret.write_bytes(encoded(pixels(0, 0)))
    monkeypatch.setattr(
        ServedGallery, "check_chips", lambda self, names: None
    )  # as if it had gone right after the check
    for asked in (
        SearchRequest(chip=str(secret)),
        SearchRequest(embedding=[1.0] * 8, positive=[str(secret)]),
        SearchRequest(embedding=[1.0] * 8, negative=[str(secret)]),
    ):
        with pytest.raises(GalleryError, match="has no chip"):
            found(gallery, Sent(asked, None))
    with pytest.raises(InputError, match="not a path"):
        gallery.search(secret, files=False)
    assert len(gallery.search(str(secret), k=3)) == 3


def test_an_embedding_of_views_is_told_and_returned(made: Path) -> None:
    views = np.random.default_rng(0).normal(size=(2, 8)).astype(np.float32)
    told = found(Gallery.open(made), Sent(SearchRequest(embedding=views.tolist(), k=2), None))
    assert isinstance(told, dict)
    np.testing.assert_allclose(told["query"]["embedding"], views)
    assert (told["query"]["told"], told["query"]["thumbnail"]) == ("an embedding", None)
