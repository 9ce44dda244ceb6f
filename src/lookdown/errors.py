"""All errors and warnings that a user can meet; each message says what to do next."""

from __future__ import annotations


class LookdownError(Exception):
    """The base of all errors that lookdown raises on purpose.

    >>> import lookdown
    >>> try:
    ...     lookdown.GaussianLikelihoodRatio().score([[1.0]], [[2.0]])
    ... except lookdown.LookdownError as error:
    ...     print(error)
    this GaussianLikelihoodRatio is not fitted yet; call fit(X, y) first
    """


class InputError(LookdownError, ValueError):
    """Arrays, labels or arguments that cannot be used; the message names the row or the argument."""


class NotFittedError(LookdownError, ValueError, AttributeError):
    """A metric was used before `fit`."""


class NotCalibratedError(LookdownError, ValueError):
    """A decision needs `calibrate` on held-out data first."""


class UnsupportedOperationError(LookdownError, TypeError):
    """The settings of a metric rule out what was asked; the message names the setting."""


class StoredMetricError(LookdownError, ValueError):
    """A stored metric cannot be written or read; the message names the file."""


class MissingExtraError(LookdownError, ImportError):
    """Packages that a part of lookdown needs are not installed."""

    def __init__(self, part: str, extra: str) -> None:
        super().__init__(f"{part} needs packages that are not installed; run: pip install 'lookdown[{extra}]'")


class LowRankWarning(UserWarning):
    """A metric compares embeddings in fewer than half of their dimensions."""


class CollapsedComponentWarning(UserWarning):
    """A mixture has more components than its data can support."""


class UncalibratedWarning(UserWarning):
    """A rate or probability comes from the model alone, not from held-out data."""


class TrainingError(LookdownError, RuntimeError):
    """A run cannot continue; the message names the batch and what was saved."""


class SourceError(LookdownError, ValueError):
    """A data source does not have the expected layout; the message names the file or folder."""


class ImageError(LookdownError, ValueError):
    """An image cannot be read; the message names the file and the reason."""


class ManifestError(LookdownError, ValueError):
    """A manifest cannot be used; the message names the file, the row and the reason."""


class OutputError(LookdownError, ValueError):
    """An output cannot be written, or its path holds something else."""


class RecipeError(LookdownError, ValueError):
    """A recipe, or an override of it, cannot be used; the message names the file and the key."""


class WeightsError(LookdownError, ValueError):
    """The weights of a network cannot be loaded or used; the message names the file or the source."""


class StoredEmbedderError(LookdownError, ValueError):
    """A stored embedder cannot be written or read; the message names the file."""


class ExportError(LookdownError, RuntimeError):
    """A network cannot be exported to another runtime, or its embeddings would differ there."""


class GalleryError(LookdownError, ValueError):
    """A gallery cannot be created, read or written, or lacks what was asked for; the message names it."""


class GalleryBusyError(GalleryError):
    """Another process is writing to the gallery."""


class EngineError(GalleryError):
    """The server that searches a gallery cannot be reached, or refuses; the message names its address."""


class StorageError(GalleryError):
    """The object store with a gallery's table cannot be reached, or refuses; the message names its address."""


class WorkersError(GalleryError):
    """Machines that work for a gallery cannot be reached, or do not see its files; the message names them."""


class UntrainedWarning(UserWarning):
    """A network starts from random weights instead of pretrained ones."""


class SkippedImagesWarning(UserWarning):
    """Images that cannot be read were skipped."""


class DamagedCacheWarning(UserWarning):
    """A cache on disk is damaged; it is ignored and built again."""
