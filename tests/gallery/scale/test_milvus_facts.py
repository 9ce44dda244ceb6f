"""Facts and terms: what a term is true of holds all that the filter keeps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.gallery.galleries import LABELS, SCENES, vector_gallery

from lookdown.gallery.scale.milvus_facts import FACTS, facts_of, stamps_of, term_of
from lookdown.gallery.search.where import Where
from lookdown.gallery.store.snapshot import FilterColumns


@pytest.fixture(scope="module")
def columns(tmp_path_factory: pytest.TempPathFactory) -> FilterColumns:
    gallery, _, _ = vector_gallery(tmp_path_factory.mktemp("facts") / "g", 200)
    return gallery.snapshot.columns


def is_true(term: str, row: dict[str, Any]) -> bool:
    """Read a term of Milvus as Python, which differs only in the name of two values."""
    return bool(eval(term, {"true": True, "false": False, "__builtins__": {}}, row))


@pytest.mark.parametrize(
    "where",
    [
        Where(),
        Where(label=LABELS[3]),
        Where(label=[*LABELS[:4]], scene=SCENES[1]),
        Where(labelled=True, background=False),
        Where(labelled=False),
        Where(sensor="S2'B", since="2021-03", until="2021-07-04"),
        Where(until="2021-02-01"),
        Where(box=(-4.0, 45.0, 3.0, 52.0)),
        Where(polygon="POLYGON ((-4 45, 3 45, 3 52, -4 45))"),
        Where(box=(170.0, -10.0, -170.0, 60.0)),
    ],
)
def test_a_term_is_true_of_all_that_the_filter_keeps(where: Where, columns: FilterColumns) -> None:
    facts = {name: column.tolist() for name, column in facts_of(columns).items()}
    term = term_of(where)
    true = [is_true(term, {name: facts[name][row] for name in FACTS}) for row in range(len(columns))]
    kept = where.rows(columns)
    assert not (kept & ~np.array(true)).any()
    if not where.regions():
        np.testing.assert_array_equal(kept, true)


def test_no_text_of_a_user_stands_in_a_term() -> None:
    term = term_of(Where(label="' or 1 == 1", scene='"]; drop', sensor="S2A"))
    assert term.replace("label in", "").replace("scene in", "").replace("sensor in", "").replace("and", "").strip("[] ")
    assert set(term) <= set("labelscenorid [],0123456789")


def test_a_stamp_changes_with_any_fact(columns: FilterColumns) -> None:
    facts = facts_of(columns)
    before = stamps_of(facts)
    np.testing.assert_array_equal(before, stamps_of(facts_of(columns)))
    for name, column in facts.items():
        other = column.copy()
        other[5] = ~other[5] if column.dtype == np.bool_ else other[5] + 1
        changed = np.flatnonzero(stamps_of(facts | {name: other}) != before)
        assert changed.tolist() == [5], name
