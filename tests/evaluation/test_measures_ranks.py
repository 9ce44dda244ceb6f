"""Places of relevant results, counted one comparison at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lookdown.errors import InputError
from lookdown.evaluation import RelevantRanks

Entry = tuple[int, int, int, int]


def entries(hits: RelevantRanks) -> list[Entry]:
    columns = (hits.query, hits.above, hits.tied, hits.relevant)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def counted(scores: NDArray[Any], relevant: list[set[int]], excluded: list[set[int]]) -> list[Entry]:
    """For each score that a relevant result has: who is above, who shares it, who of these is relevant."""
    found = []
    for query, row in enumerate(scores.tolist()):
        results = [i for i in range(len(row)) if i not in excluded[query]]
        right = relevant[query] - excluded[query]
        for value in sorted({row[i] for i in right}, reverse=True):
            above = sum(row[i] > value for i in results)
            tied = [i for i in results if row[i] == value]
            found.append((query, above, len(tied), len(right & set(tied))))
    return found


@pytest.mark.parametrize("levels", [2, 5, 1000])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
def test_places_are_those_of_counting(levels: int, dtype: Any) -> None:
    rng = np.random.default_rng(levels)
    scores = rng.integers(levels, size=(20, 30)).astype(dtype)
    relevant = [set(rng.choice(30, size=size, replace=False).tolist()) for size in rng.integers(12, size=20)]
    excluded = [set(rng.choice(30, size=size, replace=False).tolist()) for size in rng.integers(3, size=20)]

    def as_rows(sets: list[set[int]]) -> list[NDArray[np.intp]]:
        return [np.array(sorted(some), dtype=np.intp) for some in sets]

    found = RelevantRanks.of_scores(scores, as_rows(relevant), as_rows(excluded))
    assert entries(found) == counted(scores, relevant, excluded)
    assert found.counts.tolist() == [len(r - e) for r, e in zip(relevant, excluded, strict=True)]
    plain = RelevantRanks.of_scores(scores, as_rows(relevant))
    assert entries(plain) == counted(scores, relevant, [set()] * 20)


def test_a_ranked_list_is_read_as_it_stands() -> None:
    found = RelevantRanks.of_ranked([[False, True, True], [False, False, False], [True, False, False]])
    assert entries(found) == [(0, 1, 1, 1), (0, 2, 1, 1), (2, 0, 1, 1)]
    assert found.counts.tolist() == [2, 0, 1]


def test_infinite_scores_have_a_place_and_nan_has_none() -> None:
    rows = [np.array([0, 2]), np.array([1])]
    scores = np.array([[np.inf, 0.0, -np.inf], [1.0, 2.0, 3.0]])
    assert entries(RelevantRanks.of_scores(scores, rows)) == [(0, 0, 1, 1), (0, 2, 1, 1), (1, 1, 1, 1)]
    scores[1, 2] = np.nan
    with pytest.raises(InputError, match="score of query 8 and gallery row 2 is NaN"):
        RelevantRanks.of_scores(scores, rows, first=7)


@pytest.mark.parametrize("wrong", [[True, False], [[0, 1]], np.zeros((2, 2, 2), dtype=bool), None])
def test_what_is_not_a_ranked_list_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match="results must be booleans of shape"):
        RelevantRanks.of_ranked(wrong)
