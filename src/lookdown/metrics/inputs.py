"""Arrays from users (numpy, torch, lists), checked and converted, or refused."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array, column_or_1d

from lookdown.errors import InputError

__all__ = [
    "Array",
    "Embeddings",
    "PartialLabels",
    "as_count",
    "as_embeddings",
    "as_flags",
    "as_labels",
    "as_number",
    "as_numpy",
    "as_partial_labels",
    "known_labels",
    "refuse_non_finite",
    "refuse_zero",
    "unit",
]

Array = NDArray[np.float64]
Embeddings = NDArray[np.floating[Any]]
PartialLabels = ArrayLike | Iterable[Any]  # None where a row has no label


def as_embeddings(X: ArrayLike, *, name: str = "X", finite: bool = True) -> Embeddings:
    """Return `X` as a float32 or float64 matrix of samples by dimensions; half precision and integers are widened."""
    values = as_numpy(X)
    try:
        values = values if hasattr(values, "shape") else np.asarray(values)
    except (ValueError, TypeError) as error:
        raise InputError(f"{name} is not a matrix of embeddings: {str(error).splitlines()[0]}") from error
    if len(values.shape) != 2:
        raise InputError(
            f"{name} has shape {tuple(values.shape)}, expected 2D array instead: samples by dimensions. Reshape your "
            f"data, with {name}[None] for a single embedding"
        )
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise InputError(f"{name} has masked values; drop those rows")
    if getattr(values, "dtype", np.dtype(float)).kind in "mM":
        raise InputError(f"{name} holds times, not embeddings; give a matrix of numbers")
    try:
        matrix: Embeddings = check_array(
            values, dtype=[np.float64, np.float32], ensure_all_finite=False, input_name=name
        )
    except (ValueError, TypeError) as error:
        raise InputError(f"{name} is not a matrix of embeddings: {str(error).splitlines()[0]}") from error
    if finite:
        refuse_non_finite(matrix, name)
    return matrix


def as_labels(y: ArrayLike | None, samples: int, *, name: str = "y") -> NDArray[Any]:
    """Return `y` as one label a sample: int64, float64 or str, so that labels of two batches can be compared."""
    if y is None:
        raise InputError(f"{name} is missing: requires y to be passed, but the target y is None; give one label a row")
    try:
        labels: NDArray[Any] = column_or_1d(as_numpy(y), warn=True)
    except (ValueError, TypeError) as error:
        raise InputError(f"{name} must be one label a row: {str(error).splitlines()[0]}") from error
    if len(labels) != samples:
        raise InputError(f"{name} has {len(labels)} labels for {samples} rows; give one label a row")
    if labels.dtype.kind == "O":
        labels = _of_one_type(labels, name)
    if labels.dtype.kind == "S":
        try:
            labels = np.char.decode(labels, "utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"{name} has labels in bytes that are not UTF-8; decode them to strings first") from error
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        row = int(np.flatnonzero(~np.isfinite(labels))[0])
        raise InputError(f"{name} has a label that is NaN or inf in row {row}; drop unlabelled rows")
    if labels.dtype.kind in "bui" or (labels.dtype.kind == "f" and (labels == np.floor(labels)).all()):
        whole = labels.astype(np.int64)
        if (whole != labels).any():
            raise InputError(f"{name} has whole numbers beyond 64 bits with sign; use strings")
        return whole
    if labels.dtype.kind not in "fU":
        raise InputError(f"{name} has labels of type {labels.dtype}; use strings or integers")
    return labels.astype(np.float64) if labels.dtype.kind == "f" else labels


def as_partial_labels(
    y: PartialLabels | None, samples: int, *, name: str = "y"
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return a number for each label, and which rows have one.

    None, NaN and, as in scikit-learn, the integer -1 mark rows without a label; if `y` is None, no row has one.
    """
    numbers, known = np.zeros(samples, dtype=np.int64), np.zeros(samples, dtype=np.bool_)
    if y is not None:
        known, labels = known_labels(y, samples, name=name, skip_minus_one=True)
        numbers[known] = np.unique(labels, return_inverse=True)[1]
    return numbers, known


def known_labels(
    y: PartialLabels, samples: int, *, name: str = "y", skip_minus_one: bool = False
) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    """Return which rows have a label, and the labels of these rows; None and NaN mark the rest.

    skip_minus_one: take the integer -1 for a missing label too, as scikit-learn does.
    """
    values = as_numpy(y)
    if not hasattr(values, "dtype"):
        try:
            listed = list(values)
        except TypeError as error:
            raise InputError(f"{name} must be one label a row, got {y!r}") from error
        values = np.empty(len(listed), dtype=object)  # keeps each value: numpy would turn 1 beside "a" into "1"
        values[:] = listed
    values = np.asarray(values)
    if len(values) != samples:
        raise InputError(f"{name} has {len(values)} labels for {samples} rows; give one label a row, or None")
    values = values.ravel() if values.ndim == 2 and values.shape[1] == 1 else values
    known = [
        not (label is None or label != label or (skip_minus_one and isinstance(label, int | float) and label == -1))
        for label in values.tolist()
    ]
    mask = np.array(known, dtype=np.bool_)
    return mask, as_labels(values[mask], int(mask.sum()), name=name)


def as_flags(flags: ArrayLike | None, samples: int, *, name: str) -> NDArray[np.bool_]:
    """Return `flags` as one boolean a sample, all false for None."""
    if flags is None:
        return np.zeros(samples, dtype=np.bool_)
    mask = np.asarray(as_numpy(flags))
    if mask.dtype != np.bool_ or mask.shape != (samples,):
        raise InputError(
            f"{name} must be {samples} booleans, one a row, true where a row is {name}; "
            f"got {mask.dtype} of shape {mask.shape}"
        )
    return mask


def as_count(value: Any, name: str, *, least: int = 1) -> int:
    """Return a whole number of at least `least`, or refuse it by name; booleans are not numbers."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)


def as_number(value: Any, name: str) -> float:
    """Return a single number; infinity is one, NaN is not."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if np.isnan(number):
        raise InputError(f"{name} must be a number, got {value!r}")
    return number


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
    """Put each row on the unit sphere; a zero row has no direction and is refused.

    Rows are scaled by their largest entry first, since the squares of very large or small ones overflow or vanish.
    """
    refuse_zero(matrix, name)
    scaled = matrix / np.abs(matrix).max(axis=1, keepdims=True)
    return np.asarray(scaled / np.linalg.norm(scaled, axis=1, keepdims=True))


def refuse_zero(matrix: Embeddings, name: str = "X") -> None:
    """Raise if a row is zero, naming the first such row."""
    directed = matrix.any(axis=1)
    if not directed.all():
        zero = np.flatnonzero(~directed)
        raise InputError(
            f"{name} has a zero vector in row {zero[0]} ({len(zero)} of {len(matrix)} rows) which cannot be put on the "
            "unit sphere; drop those rows or use normalize=False"
        )


def _of_one_type(labels: NDArray[Any], name: str) -> NDArray[Any]:
    """Turn an array of Python objects into one of integers, strings or bytes."""
    numbers = (int, float, np.integer, np.floating)
    for kind, dtype in ((str, np.str_), (bytes, np.bytes_), ((int, np.integer), np.int64), (numbers, np.float64)):
        if all(isinstance(label, kind) for label in labels.tolist()):
            return labels.astype(dtype)
    types = ", ".join(sorted({type(label).__name__ for label in labels.tolist()}))
    raise InputError(f"{name} has labels of type {types}; use all strings or all integers, and drop unlabelled rows")


def as_numpy(values: Any) -> Any:
    """Return a torch tensor as numpy and anything else as it is, without importing torch."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(values, torch.Tensor):
        return values
    tensor = values.detach().cpu()
    return (tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor).numpy()
