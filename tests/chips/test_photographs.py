"""One way to open pictures from strangers."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, UnidentifiedImageError

from lookdown.chips import photographs
from lookdown.chips.photographs import open_photograph, refuse_remote
from lookdown.errors import ImageError


@pytest.mark.parametrize("path", ["/vsicurl/http://x/y.tif", "//vsizip/a.zip", "https://x/y.png", "s3://bucket/key"])
def test_an_address_is_refused(path: str) -> None:
    with pytest.raises(ImageError, match="is not a local file; download it first"):
        refuse_remote(Path(path))


@pytest.mark.parametrize("path", ["/data/a.png", "C:/data/a.png", "vsi.png", "data/x:y/a.png", "/a b/ö.jpg"])
def test_a_file_is_not(path: str) -> None:
    refuse_remote(Path(path))


def test_formats_that_start_a_program_are_not_opened(tmp_path: Path) -> None:
    (tmp_path / "a.eps").write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\nshowpage\n")
    with pytest.raises(UnidentifiedImageError):
        open_photograph(tmp_path / "a.eps")


def test_threads_leave_the_limit_of_pillow_as_it_was(tmp_path: Path) -> None:
    Image.fromarray(np.zeros((9, 9), np.uint8)).save(tmp_path / "a.png")
    before = Image.MAX_IMAGE_PIXELS

    def work() -> None:
        for _ in range(50):
            open_photograph(tmp_path / "a.png").close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert before == Image.MAX_IMAGE_PIXELS
    assert photographs.MAX_PIXELS == 300_000_000
