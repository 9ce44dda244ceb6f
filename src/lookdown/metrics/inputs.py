"""Arrays as users have them (numpy, torch, lists) turned into arrays the mathematics can trust, or refused."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array, column_or_1d

from lookdown.errors import InputError

__all__ = ["Embeddings", "as_embeddings", "as_flags", "as_labels", "refuse_non_finite", "unit"]

Embeddings = NDArray[np.floating[Any]]


def as_embeddings(X: ArrayLike, *, name: str = "X", finite: bool = True) -> Embeddings:
    """Return `X` as a float32 or float64 matrix of samples by dimensions; half precision and integers are widened."""
    try:
        matrix: Embeddings = check_array(
            _as_numpy(X), dtype=[np.float64, np.float32], ensure_all_finite=False, input_name=name
        )
    except (ValueError, TypeError) as error:
        raise InputError(f"{name} is not a matrix of embeddings: {error}") from error
    if finite:
        refuse_non_finite(matrix, name)
    return matrix


def as_labels(y: ArrayLike | None, samples: int, *, name: str = "y") -> NDArray[Any]:
    """Return `y` as one sortable label a sample: integers, strings or booleans."""
    if y is None:
        raise InputError(f"{name} is missing: requires y to be passed, but the target y is None; give one label a row")
    try:
        labels: NDArray[Any] = column_or_1d(_as_numpy(y), warn=True)
    except (ValueError, TypeError) as error:
        raise InputError(f"{name} must be one label a row: {error}") from error
    if len(labels) != samples:
        raise InputError(f"{name} has {len(labels)} labels for {samples} rows; give one label a row")
    if labels.dtype.kind == "O":
        kinds = {type(label) for label in labels.tolist()}
        if kinds != {str}:
            found = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise InputError(f"{name} mixes labels of type {found}; use strings or integers, and drop unlabelled rows")
        labels = labels.astype(str)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        row = int(np.flatnonzero(~np.isfinite(labels))[0])
        raise InputError(f"{name} has a label that is NaN or inf in row {row}; drop unlabelled rows")
    if labels.dtype.kind not in "biufUS":
        raise InputError(f"{name} has labels of type {labels.dtype}; use strings or integers")
    return labels


def as_flags(flags: ArrayLike | None, samples: int, *, name: str) -> NDArray[np.bool_]:
    """Return `flags` as one boolean a sample; none given means all false."""
    if flags is None:
        return np.zeros(samples, dtype=np.bool_)
    marked = np.asarray(_as_numpy(flags))
    if marked.dtype != np.bool_ or marked.shape != (samples,):
        raise InputError(
            f"{name} must be {samples} booleans, one a row of X, true where a row is {name}; "
            f"got {marked.dtype} of shape {marked.shape}"
        )
    return marked


def refuse_non_finite(matrix: Embeddings, name: str = "X") -> None:
    """Raise if a value is NaN or infinite, naming the first such row."""
    with np.errstate(over="ignore", invalid="ignore"):
        plausible = np.isfinite(matrix.sum())
    if plausible or np.isfinite(matrix).all():
        return
    bad = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    kind = "NaN" if np.isnan(matrix[bad[0]]).any() else "inf"
    raise InputError(
        f"{name} contains {kind} in row {bad[0]} ({len(bad)} of {len(matrix)} rows have NaN or inf); "
        "drop those rows or embed them again"
    )


def unit(matrix: Embeddings, name: str = "X") -> Embeddings:
    """Put each row on the unit sphere; a zero row has no direction and is refused."""
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    if not norms.all():
        zero = np.flatnonzero(norms[:, 0] == 0)
        raise InputError(
            f"{name} has a zero vector in row {zero[0]} ({len(zero)} of {len(matrix)} rows) which cannot be put on the "
            "unit sphere; drop those rows or use normalize=False"
        )
    return np.asarray(matrix / norms)


def _as_numpy(values: Any) -> Any:
    """Return a torch tensor as numpy and anything else as it is; torch is not imported for it."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(values, torch.Tensor):
        return values
    tensor = values.detach().cpu()
    return (tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor).numpy()
