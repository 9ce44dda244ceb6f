"""A small network and its exports for the tests, made once for a process; who writes to one takes a copy."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from lookdown.networks import Embedder
from lookdown.networks.exporting import Space, export
from lookdown.networks.quantizing import quantize
from lookdown.networks.runtimes import RuntimeName

__all__ = ["RUNTIMES", "chips", "network", "owner", "space"]

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


@lru_cache
def owner() -> Path:
    """Return a folder as a run or gallery has it: `embedder`, and in `exported` both runtimes in both precisions."""
    folder = Path(mkdtemp()) / "owner"
    network().save(folder / "embedder")
    for runtime in RUNTIMES:
        made = export(network(), folder / "exported" / runtime, runtime, chips(), space())
        assert quantize(made, folder / "exported" / f"{runtime}-int8", chips(), lambda embedder: 50.0).export
    return folder
