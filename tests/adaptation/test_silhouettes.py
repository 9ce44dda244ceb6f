"""The mean silhouette, against its formula."""

from __future__ import annotations

import numpy as np
import pytest
from tests.adaptation.targets import kinds
from tests.adaptation.test_support import naive_silhouette

from lookdown.adaptation.silhouettes import silhouette_of


def test_it_is_the_mean_over_rows() -> None:
    X, y = kinds(4, 20, gap=1.0)
    assert silhouette_of(X, y) == pytest.approx(naive_silhouette(X, y))


def test_one_cluster_or_one_a_row_cannot_be_compared() -> None:
    X, _ = kinds(4, 5)
    assert silhouette_of(X, np.zeros(20, np.int64)) == -1
    assert silhouette_of(X, np.arange(20)) == -1
