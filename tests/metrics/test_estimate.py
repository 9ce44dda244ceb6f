"""A float that remembers where it came from."""

from __future__ import annotations

import copy
import math
import pickle

from lookdown.metrics import Estimate

FOUND = Estimate(0.25, method="empirical", low=0.2, high=0.375, supported=True)


def test_it_is_a_float_that_survives_copying() -> None:
    assert FOUND + 1 == 1.25
    assert f"{FOUND} {FOUND:.1f}" == f"{0.25} {0.25:.1f}"
    for twin in (copy.copy(FOUND), copy.deepcopy(FOUND), pickle.loads(pickle.dumps(FOUND))):
        assert (float(twin), twin.method, twin.low, twin.high, twin.supported) == (0.25, "empirical", 0.2, 0.375, True)


def test_it_shows_its_interval_where_it_has_one() -> None:
    assert repr(FOUND) == "Estimate(0.25, method='empirical', low=0.2, high=0.375, supported=True)"
    modelled = Estimate.of_model(0.5, "analytic")
    assert repr(modelled) == "Estimate(0.5, method='analytic', supported=False)"
    assert math.isnan(modelled.low)
