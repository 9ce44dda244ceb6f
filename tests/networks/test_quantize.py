"""Int8: kept only if it finds as well, and never mistaken for the network that it was made of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.networks.exports import RUNTIMES, chips, network, owner

from lookdown.errors import InputError
from lookdown.networks import ExportedEmbedder
from lookdown.networks.quantize import LARGEST_DROP, quantize
from lookdown.networks.runtimes import RuntimeName

pytestmark = pytest.mark.export


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_int8_is_close_smaller_and_has_a_fingerprint_of_its_own(runtime: RuntimeName) -> None:
    whole = ExportedEmbedder.load(owner() / "exported" / runtime)
    small = ExportedEmbedder.load(owner() / "exported" / f"{runtime}-int8")
    images = chips(20, seed=3)
    x, y = whole.embed(images), small.embed(images)
    cosines = (x * y).sum(axis=1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1)
    assert cosines.min() > 0.9
    assert not np.allclose(x, y, rtol=1e-6, atol=0), "it was not quantized at all"
    assert small.description.source == whole.fingerprint == network().fingerprint != small.fingerprint
    assert small.description.measured["mAP"] == 50.0


@pytest.mark.parametrize(("after", "kept"), [(80.0 - LARGEST_DROP, True), (79.4, False), (float("nan"), False)])
def test_it_is_kept_only_if_retrieval_hardly_suffers(tmp_path: Path, after: float, kept: bool) -> None:
    whole = ExportedEmbedder.load(owner() / "exported" / "openvino")

    def judge(embedder: ExportedEmbedder) -> float:
        assert embedder.embed(chips(2)).shape == (2, 8), "it can be used when it is judged"
        return 80.0 if embedder.description.precision == "fp32" else after

    found = quantize(whole, tmp_path / "openvino-int8", chips(), judge)
    assert (found.export is not None) == kept == (tmp_path / "openvino-int8").exists()
    assert ("int8 is kept" if kept else "more than 0.5 is lost, so float32 is kept") in str(found)


def test_ranges_need_chips(tmp_path: Path) -> None:
    whole = ExportedEmbedder.load(owner() / "exported" / "openvino")
    with pytest.raises(InputError, match="ranges are measured on them; give some hundreds"):
        quantize(whole, tmp_path / "openvino-int8", chips(1), lambda embedder: 50.0)
