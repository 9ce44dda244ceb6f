"""Every error and warning a user can meet; each message says what to do next."""

from __future__ import annotations

__all__ = [
    "CollapsedComponentWarning",
    "DamagedCacheWarning",
    "EngineError",
    "ExportError",
    "GalleryBusyError",
    "GalleryError",
    "ImageError",
    "InputError",
    "LookdownError",
    "LowRankWarning",
    "ManifestError",
    "MissingExtraError",
    "NotCalibratedError",
    "NotFittedError",
    "OutputError",
    "RecipeError",
    "SkippedImagesWarning",
    "SourceError",
    "StorageError",
    "StoredEmbedderError",
    "StoredMetricError",
    "TrainingError",
    "UncalibratedWarning",
    "UnsupportedOperationError",
    "UntrainedWarning",
    "WeightsError",
    "WorkersError",
]


class LookdownError(Exception):
    """Base of all errors that lookdown raises on purpose."""


class InputError(LookdownError, ValueError):
    """Arrays, labels or arguments that cannot be used; the message names the row or the argument."""


class NotFittedError(LookdownError, ValueError, AttributeError):
    """A metric is asked for an answer before `fit`."""


class NotCalibratedError(LookdownError, ValueError):
    """A decision needs `calibrate` on held-out data first."""


class UnsupportedOperationError(LookdownError, TypeError):
    """A metric is asked for something that its settings rule out; the message names the setting."""


class StoredMetricError(LookdownError, ValueError):
    """A metric on disk that cannot be written or read; the message names the file."""


class MissingExtraError(LookdownError, ImportError):
    """A part of lookdown needs packages that are not installed."""

    def __init__(self, part: str, extra: str) -> None:
        super().__init__(f"{part} needs packages that are not installed; run: pip install 'lookdown[{extra}]'")


class LowRankWarning(UserWarning):
    """A metric compares embeddings in fewer than half of their dimensions."""


class CollapsedComponentWarning(UserWarning):
    """A mixture was asked for more components than its data can carry."""


class UncalibratedWarning(UserWarning):
    """A rate or probability comes from the model's own law, not from held-out data."""


class TrainingError(LookdownError, RuntimeError):
    """A run that cannot go on; the message names the batch, and what was kept."""


class SourceError(LookdownError, ValueError):
    """A data source that is not laid out as expected; the message names the file or folder."""


class ImageError(LookdownError, ValueError):
    """An image that cannot be read; the message names the file and the reason."""


class ManifestError(LookdownError, ValueError):
    """A manifest that cannot be used; the message names the file, the row and the reason."""


class OutputError(LookdownError, ValueError):
    """An output folder that cannot be written, or that holds something else."""


class RecipeError(LookdownError, ValueError):
    """A recipe, or a `--set` over it, that cannot be used; the message names the file and the key."""


class WeightsError(LookdownError, ValueError):
    """Weights of a network that cannot be had or used; the message names the file or the place."""


class StoredEmbedderError(LookdownError, ValueError):
    """An embedder on disk that cannot be written or read; the message names the file."""


class ExportError(LookdownError, RuntimeError):
    """A network that cannot be written for another runtime, or that would embed otherwise there."""


class GalleryError(LookdownError, ValueError):
    """A gallery that cannot be made, read or written, or that lacks what is asked for; the message names it."""


class GalleryBusyError(GalleryError):
    """A gallery that another process is writing to."""


class EngineError(GalleryError):
    """A server that a gallery is searched by is away, or refuses; the message names its address."""


class StorageError(GalleryError):
    """An object store that the table of a gallery is in is away, or refuses; the message names the address."""


class WorkersError(GalleryError):
    """Machines that work for a gallery are away, or do not see what they should; the message names them."""


class UntrainedWarning(UserWarning):
    """A network starts from random weights though others were wanted."""


class SkippedImagesWarning(UserWarning):
    """Some images could not be read and were left out."""


class DamagedCacheWarning(UserWarning):
    """What was kept on disk to save time is damaged; it is not used, and made again."""
