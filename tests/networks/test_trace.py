"""Tracing in a process of its own: the graph is that of the network, and what cannot be traced is told."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from tests.networks.exports import chips, network

from lookdown.errors import ExportError
from lookdown.networks.stored_embedder import load_embedder
from lookdown.networks.trace import Graph, trace_apart

pytestmark = pytest.mark.export


def test_the_graph_gives_what_the_module_gives_for_any_number_of_images(tmp_path: Path) -> None:
    factor = torch.randn(8, 5)
    for normalize in (True, False):
        file = tmp_path / f"{normalize}.onnx"
        trace_apart(network(), factor, file, normalize=normalize)
        session = onnxruntime.InferenceSession(file)
        assert [one.name for one in session.get_outputs()] == ["embedding", "transformed"]
        for count in (1, 7):
            images = chips(count)
            with torch.inference_mode():
                wanted = Graph(network(), factor, normalize=normalize).eval()(torch.from_numpy(images))
            for ours, theirs in zip(session.run(None, {"images": images}), wanted, strict=True):
                np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-3, atol=1e-4)


def test_what_cannot_be_traced_is_told_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python that raises in the place of torch's exporter, as it does at networks that it cannot follow."""
    fake = tmp_path / "python"
    code = (
        "import sys, torch\n"
        "def refuse(*words, **named): raise ValueError('data-dependent branch')\n"
        "torch.onnx.export = refuse\n"
        "import lookdown.networks.trace as tracing; sys.argv = ['', *sys.argv[5:]]; tracing.main()\n"
    )
    (tmp_path / "refusing.py").write_text(code)
    fake.write_text(f'#!/bin/sh\nexec {sys.executable} {tmp_path / "refusing.py"} "$@"\n')
    fake.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(fake))
    told = f"test_resnet cannot be exported by torch {torch.__version__}: data-dependent branch; use torch"
    with pytest.raises(ExportError, match=re.escape(told)):
        trace_apart(network(), torch.eye(8), tmp_path / "model.onnx", normalize=True)
    assert not (tmp_path / "model.onnx").exists()


def test_the_network_itself_stays_as_it_is(tmp_path: Path) -> None:
    network().save(tmp_path / "embedder")
    before = network().fingerprint
    trace_apart(network(), torch.eye(8), tmp_path / "model.onnx", normalize=True)
    assert network().fingerprint == load_embedder(tmp_path / "embedder").fingerprint == before
