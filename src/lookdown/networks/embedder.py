"""Chips in, embeddings out: preprocessing, trunk, pooling and head in one module."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn

from lookdown.errors import InputError, SkippedImagesWarning
from lookdown.networks.backbones import Trunk, build_trunk, load_trunk, normalisation, resolve_name
from lookdown.networks.embedding import (
    EmbeddedChips,
    Embeddings,
    Turns,
    check_turns,
    embed_batches,
    evaluated,
    told,
)
from lookdown.networks.exported import ExportedEmbedder
from lookdown.networks.fingerprint import fingerprint
from lookdown.networks.image_batches import ImageBatches, Images, check_images
from lookdown.networks.pooling import build_pooling
from lookdown.networks.principal_components import principal_components
from lookdown.networks.projection import FixedProjection, build_head
from lookdown.networks.settings import PoolingKind, Settings, check_limits
from lookdown.networks.weights import find_weights, trained_source
from lookdown.progress import Progress, no_progress

__all__ = ["Embedder"]


class Embedder(nn.Module):
    """A network that turns chips into embeddings x, raw: putting them on the unit sphere is up to the metric.

    `backbone` is any name timm knows, `weights` one of `auto`, `wheel`, `hub`, `none` or a file (see `find_weights`).
    What is random, the head and weights that are not given, is drawn from `seed`; the global generator stays as it is.
    A new embedder is in training mode, one from `pretrained` or `load` in evaluation mode.
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
        settings = Settings(
            backbone=name, bands=bands, size=size, pooling=pooling, head=head, dimension=dimension, mean=mean, std=std
        )
        with _own_randomness(seed):
            self._assemble(settings)
            found = find_weights(name, weights)
            if found.tensors is not None:
                load_trunk(self.trunk, found.tensors, name=name, bands=bands, size=size, origin=found.origin)
        self.origin = found.origin

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
        """
        if images is None:
            raise InputError("images is missing: the projection is fitted to them; give some hundreds of yours")
        if weights == "none":
            raise InputError(
                "weights='none' is no pretrained network; build Embedder(..., weights='none') and train it"
            )
        source = trained_source(resolve_name(name), weights)
        embedder = cls(name, bands=bands, size=size, pooling=pooling, dimension=dimension, weights=source)
        batches = ImageBatches(images, bands=bands, size=size, batch_size=batch_size)
        with embedder.evaluating():
            features = (values for _, values in evaluated(batches, embedder._numbers(embedder.features), progress))
            components = principal_components(features, dimension)
        if batches.skipped:
            warnings.warn(told(batches.skipped, batches.total), SkippedImagesWarning, stacklevel=2)
        embedder.head = FixedProjection.of(components)
        embedder.settings = replace(embedder.settings, head="pca")
        return embedder.eval()

    @classmethod
    def of_settings(cls, settings: Settings) -> Self:
        """Return an embedder of these settings with random weights, to put stored ones into."""
        embedder = cls.__new__(cls)
        nn.Module.__init__(embedder)
        with _own_randomness(0):
            embedder._assemble(settings)
        embedder.origin = "random weights"
        return embedder

    @property
    def fingerprint(self) -> str:
        """A digest of settings and weights: two embedders that share it return the same embeddings."""
        return fingerprint(asdict(self.settings), self.state_dict())

    @property
    def trunk_fingerprint(self) -> str:
        """A digest of all that decides `features`: features kept on disk are good as long as it stays the same."""
        settings = {key: value for key, value in asdict(self.settings).items() if key not in ("head", "dimension")}
        tensors = {key: value for key, value in self.state_dict().items() if not key.startswith("head.")}
        return fingerprint(settings, tensors)

    def freeze_trunk(self) -> Self:
        """Keep trunk and pooling, which decide `features`, as they are: no gradients, evaluation mode even in training.

        The head alone is then trained, and `trunk_fingerprint` stays the same.
        """
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
        """Return what the head is given, (n, width): the pooled features of the trunk."""
        check_images(images, bands=self.settings.bands, size=self.settings.size)
        wide = torch.promote_types(self.mean.dtype, torch.float32)
        scaled = ((images.to(self.mean.device, wide) / 255 - self.mean) / self.std).to(self.trunk.dtype)
        pooled: Tensor = self.pooling(self.trunk(scaled.contiguous(memory_format=torch.channels_last)))
        return pooled.to(self.mean.dtype)

    def embed(
        self, images: Images, *, turns: Turns = 1, batch_size: int = 64, progress: Progress = no_progress
    ) -> Embeddings:
        """Return raw embeddings, a row an image: of an array or tensor (uint8, bands first), files, or a manifest.

        turns: 4 takes the mean over quarter turns of each image, which is the same whichever of them it is given in.

        A file that cannot be read is an error, since rows would no longer match what you have listed; `embed_chips`
        leaves such files out and says which.
        """
        found = self._embed(images, batch_size, progress, self._seen(turns), self.settings.dimension, skip=False)
        return found.embeddings

    def embed_chips(
        self, chips: Images, *, turns: Turns = 1, batch_size: int = 64, progress: Progress = no_progress
    ) -> EmbeddedChips:
        """Return raw embeddings of the chips that can be read, which ones they are, and what is wrong with the rest."""
        return self._embed(chips, batch_size, progress, self._seen(turns), self.settings.dimension, skip=True)

    def embed_features(self, chips: Images, *, batch_size: int = 64, progress: Progress = no_progress) -> EmbeddedChips:
        """Return what the head is given, (n, width), of the chips that can be read; the rest as in `embed_chips`.

        With a frozen trunk that is work to do once: the rows are good as long as `trunk_fingerprint` stays the same.
        """
        return self._embed(chips, batch_size, progress, self.features, self.trunk.width, skip=True)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write to the folder `path`, as data: `embedder.json` and `embedder.safetensors`."""
        from lookdown.networks.storage import save_embedder

        save_embedder(self, path, overwrite=overwrite)

    @staticmethod
    def load(path: str | Path) -> Embedder | ExportedEmbedder:
        """Read what `save` or `lookdown export` wrote; nothing is downloaded or executed, what is damaged is refused.

        `lookdown.networks.storage.load_embedder` reads networks of torch alone, to go on with them.
        """
        from lookdown.networks.storage import load_embedder

        return ExportedEmbedder.load(path) if ExportedEmbedder.is_at(path) else load_embedder(path)

    def _seen(self, turns: Turns) -> Callable[[Tensor], Tensor]:
        """Return what makes an embedding of an image: one pass, or the mean of four."""
        check_turns(turns)
        if turns == 1:
            return self.forward
        return lambda images: torch.stack(
            [self.forward(torch.rot90(images, turn, (2, 3))) for turn in range(turns)]
        ).mean(dim=0)

    def _assemble(self, settings: Settings) -> None:
        self.settings = settings
        self.trunk_is_frozen = False
        self.trunk: Trunk = build_trunk(settings.backbone, bands=settings.bands, size=settings.size)
        self.pooling = build_pooling(settings.pooling)
        self.head = build_head(settings.head, self.trunk.width, settings.dimension)
        for name, values in (("mean", settings.mean), ("std", settings.std)):
            self.register_buffer(name, torch.tensor(values).reshape(1, -1, 1, 1), persistent=False)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # half as fast again on a CPU

    def _embed(
        self,
        images: Images,
        batch_size: int,
        progress: Progress,
        function: Callable[[Tensor], Tensor],
        width: int,
        *,
        skip: bool,
    ) -> EmbeddedChips:
        batches = ImageBatches(images, bands=self.settings.bands, size=self.settings.size, batch_size=batch_size)
        with self.evaluating():
            return embed_batches(batches, self._numbers(function), width, progress, skip=skip)

    @staticmethod
    def _numbers(function: Callable[[Tensor], Tensor]) -> Callable[[Any], Embeddings]:
        """Return a function of images, as an array or a tensor, to an array."""

        def run(images: Any) -> Embeddings:
            # An array is copied: it may be a file mapped for reading, which torch does not take.
            given = images if isinstance(images, Tensor) else torch.tensor(images)
            with torch.inference_mode():
                return function(given).float().cpu().numpy()

        return run

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Put every part into evaluation mode, and each back afterwards: a frozen trunk beside a head in training."""
        modes = [(module, module.training) for module in self.modules()]
        self.eval()
        try:
            yield
        finally:
            for module, training in modes:
                module.training = training


@contextmanager
def _own_randomness(seed: int) -> Iterator[None]:
    """Draw from a seed, and leave the generators of the caller as they were."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise InputError(f"seed must be a whole number from 0 to 2^63 - 1, got {seed!r}")
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would reset those of other devices as well
        yield
