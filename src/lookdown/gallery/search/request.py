"""The request of a search: the same names, defaults and meaning in Python, on the command line and over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lookdown.errors import InputError
from lookdown.gallery.search.examples import Example, one_or_several
from lookdown.gallery.search.where import Where
from lookdown.metrics import Metric

__all__ = ["SearchRequest"]

_DEFAULT_HITS = 50  # without k and without a rate


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchRequest:
    """What to find in a gallery: the `k` best chips, or all that a false-alarm rate accepts.

    examples: what to find. Each is an image (a path, the bytes of a file, or uint8 pixels (h, w, bands)), an embedding
        (d,), several embeddings of one object (views, d), or the id of a chip in the gallery. A score is the mean over
        the examples. Chips that are examples are not among the hits.
    counter_examples: what the hits should not be like, in the same forms.
    k: how many hits; 50 if there is no `false_alarm_rate`.
    false_alarm_rate: instead of `k`, accept what a chip of another kind reaches this often, such as 1e-3.
    where: which chips to search.
    metric: the name of a metric of the gallery, `cosine`, or (in Python) a metric. None is the one in use.
    prior: the share of the archive that you assume to be of this kind; posteriors depend on it.
    turned: embed images in four quarter turns, so that their heading does not matter. A score is the mean over the
        turns, which a chip of another kind reaches less often than the rate says.
    overlap: windows of a scene that share more than this part of the smaller one are one hit; 1 keeps every window.
    expand: how many of the best hits join the examples for a second search.
    rerank: order the hits by their k-reciprocal neighbours; their scores stay.

    >>> from lookdown import SearchRequest, Where
    >>> request = SearchRequest(examples="tanker-0003", false_alarm_rate=1e-3, where=Where(sensor="Sentinel-2"))
    >>> request.examples, request.prior, request.turned
    (['tanker-0003'], 0.01, False)
    """

    examples: Example | Sequence[Example]
    counter_examples: Example | Sequence[Example] = ()
    k: int | None = None
    false_alarm_rate: float | None = None
    where: Where | None = None
    metric: str | Metric | None = None
    prior: float = 0.01
    turned: bool = False
    overlap: float = 0.2
    expand: int = 0
    rerank: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "examples", one_or_several(self.examples))
        object.__setattr__(self, "counter_examples", one_or_several(self.counter_examples))
        if not one_or_several(self.examples):
            raise InputError("there is nothing to search for; give at least one example")
        if self.k is not None and self.false_alarm_rate is not None:
            raise InputError("give `k` or `false_alarm_rate`, not both: one says how many hits, the other how good")
        if self.k is not None and not (_is_whole(self.k) and self.k >= 1):
            raise InputError(f"`k` must be a whole number of at least 1, got {self.k!r}")
        for name, value in (("false_alarm_rate", self.false_alarm_rate), ("prior", self.prior)):
            if value is not None and not (_is_number(value) and 0 < value < 1):
                raise InputError(f"`{name}` must be between 0 and 1, both excluded; got {value!r}")
        if not (_is_number(self.overlap) and 0 <= self.overlap <= 1):
            raise InputError(f"`overlap` must be a share from 0 to 1, where 1 keeps every window; got {self.overlap!r}")
        if not (_is_whole(self.expand) and self.expand >= 0):
            raise InputError(f"`expand` must be a whole number of at least 0, got {self.expand!r}")

    @property
    def hits(self) -> int | None:
        """How many hits to return; None for all that the rate accepts."""
        return _DEFAULT_HITS if self.k is None and self.false_alarm_rate is None else self.k


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
