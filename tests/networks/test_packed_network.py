"""A network that was packed embeds elsewhere as it does here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.networks.exports import network, owner

from lookdown.networks import ExportedEmbedder
from lookdown.networks.network_folder import PackedNetwork

pytestmark = pytest.mark.export

IMAGES = np.random.default_rng(0).integers(0, 256, (5, 3, 32, 32), dtype=np.uint8)


def test_torch_comes_back_with_as_many_threads_as_it_is_given() -> None:
    before = torch.get_num_threads()
    try:
        found = PackedNetwork.of(network()).open(threads=1)
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)
    assert found.fingerprint == network().fingerprint
    np.testing.assert_allclose(found.embed(IMAGES), network().embed(IMAGES), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["onnx", "openvino"])
@pytest.mark.parametrize("threads", [None, 1])
def test_an_export_stays_what_it_is(name: str, threads: int | None) -> None:
    made = ExportedEmbedder.load(Path(owner(), "exported", name))
    found = PackedNetwork.of(made).open(threads=threads)
    assert isinstance(found, ExportedEmbedder)
    assert found.description == made.description
    np.testing.assert_allclose(found.embed(IMAGES), made.embed(IMAGES), rtol=1e-5, atol=1e-6)
