"""Which gallery rows are right answers to which query, and which are the query itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookdown.errors import InputError
from lookdown.metrics.inputs import as_labels

__all__ = ["KnownLabels", "Label", "Rows", "relevant_rows", "rows_with"]

Label = str | int | float
Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class KnownLabels:
    """One label a row, of which some may not be known; `name` is what an error calls them."""

    name: str
    known: NDArray[np.bool_]  # (rows,)
    labels: NDArray[Any]  # of the rows where it is known

    @classmethod
    def of(cls, labels: Iterable[Any], rows: int, name: str) -> KnownLabels:
        """Read strings or integers; None or NaN stands for a label that is not known."""
        if not hasattr(labels, "__iter__"):
            raise InputError(f"{name} is missing; give one label a row, None where it is not known")
        values = np.asarray(labels) if hasattr(labels, "dtype") else _as_objects(list(labels))
        if len(values) != rows:
            raise InputError(f"{name} has {len(values)} labels for {rows} rows; give one label a row")
        if values.dtype.kind == "O":
            known = np.array([not (value is None or (isinstance(value, float) and value != value)) for value in values])
        else:
            known = ~np.isnan(values) if values.dtype.kind == "f" else np.ones(rows, dtype=np.bool_)
        if known.shape != (rows,):
            raise InputError(f"{name} must be one label a row, got shape {values.shape}")
        return cls(name, known, as_labels(values[known], int(known.sum()), name=name))

    def without(self, rows: NDArray[np.bool_]) -> KnownLabels:
        """Take the labels of some rows for unknown."""
        return KnownLabels(self.name, self.known & ~rows, self.labels[~rows[self.known]])

    def tolist(self) -> list[Label | None]:
        """Return plain values, None where the label is not known."""
        filled = np.full(len(self.known), None, dtype=object)
        filled[self.known] = self.labels.tolist()
        return list(filled)


def relevant_rows(queries: KnownLabels, gallery: KnownLabels, background: NDArray[np.bool_]) -> list[Rows]:
    """Return the gallery rows with the label of each query, background left out; none for a query without a label."""
    return rows_with(queries, gallery.without(background))


def rows_with(wanted: KnownLabels, among: KnownLabels) -> list[Rows]:
    """Return for each wanted label the rows that have it; one that is not known has none."""
    if (
        len(wanted.labels)
        and len(among.labels)
        and (wanted.labels.dtype.kind == "U") != (among.labels.dtype.kind == "U")
    ):
        text, number = (wanted, among) if wanted.labels.dtype.kind == "U" else (among, wanted)
        raise InputError(
            f"{text.name} are strings but {number.name} are numbers, so none can be equal; use one kind for both"
        )
    names, codes = np.unique(among.labels, return_inverse=True)
    rows = np.flatnonzero(among.known)[np.argsort(codes, kind="stable")]
    places = dict(zip(names.tolist(), np.split(rows, np.bincount(codes, minlength=1).cumsum()[:-1]), strict=False))
    nowhere = np.empty(0, dtype=np.intp)
    return [nowhere if label is None else places.get(label, nowhere) for label in wanted.tolist()]


def _as_objects(values: list[Any]) -> NDArray[Any]:
    """Keep each value as it is: numpy would turn 1 beside "a" into "1"."""
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    return objects
