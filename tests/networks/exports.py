"""A small network and its exports for the tests, made once for all of them; who writes to one takes a copy."""

from __future__ import annotations

import hashlib
import shutil
from functools import lru_cache
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.templates import template

from lookdown.networks import Embedder
from lookdown.networks import export as export_module
from lookdown.networks.export import Space, export
from lookdown.networks.quantize import quantize
from lookdown.networks.runtimes import RuntimeName

__all__ = ["RUNTIMES", "chips", "network", "owner", "space", "trace_once"]

RUNTIMES: tuple[RuntimeName, ...] = get_args(RuntimeName)


def chips(count: int = 12, size: int = 32, bands: int = 3, seed: int = 0) -> NDArray[np.uint8]:
    """Smooth colours with noise, so that images differ in more than their noise."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (count, bands, 4, 4)).repeat(size // 4, 2).repeat(size // 4, 3)
    return np.clip(coarse + rng.normal(0, 20, coarse.shape), 0, 255).astype(np.uint8)


@lru_cache
def network() -> Embedder:
    """A network that fits into a test."""
    return Embedder("test_resnet", size=32, dimension=8, weights="none").eval()


def space(dimension: int = 8, width: int = 5) -> Space:
    """What a metric of low rank does."""
    return Space(np.random.default_rng(0).normal(size=(dimension, width)), normalize=True, name="a metric")


def owner() -> Path:
    """Return a folder as a run or gallery has it: `embedder`, and in `exported` both runtimes in both precisions."""
    return template("owner", _fill)


def _fill(folder: Path) -> None:
    network().save(folder / "embedder")
    for runtime in RUNTIMES:
        made = export(network(), folder / "exported" / runtime, runtime, chips(), space())
        assert quantize(made, folder / "exported" / f"{runtime}-int8", chips(), lambda embedder: 50.0).export


def trace_once(patch: pytest.MonkeyPatch) -> None:
    """Let torch trace each network once; another export of the same network and metric takes a copy of the graph."""
    trace = export_module.trace_apart

    def traced(embedder: Embedder, space: Space, file: Path) -> None:
        parts = (embedder.fingerprint.encode(), space.factor.tobytes(), bytes([space.normalize]))

        def make(folder: Path) -> None:
            folder.mkdir()
            trace(embedder, space, folder / "model.onnx")

        graph = template(f"graph-{hashlib.sha256(b' '.join(parts)).hexdigest()[:16]}", make)
        shutil.copy(graph / "model.onnx", file)

    patch.setattr(export_module, "trace_apart", traced)
