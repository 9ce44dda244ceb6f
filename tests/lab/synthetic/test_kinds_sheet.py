"""The sheet for the docs."""

from __future__ import annotations

import numpy as np

from lookdown.lab.synthetic.kinds_sheet import contact_sheet


def test_the_sheet_shows_every_kind_twice_and_is_not_empty() -> None:
    sheet = np.asarray(contact_sheet(side=16, columns=41))
    assert sheet.shape == (16 + 16 + 12, 41 * (2 * 16 + 6) + 6, 3)
    for number in range(41):
        left = 6 + number * 38
        near, far = sheet[22:38, left : left + 16], sheet[22:38, left + 16 : left + 32]
        assert near.std() > 0
        assert (near != far).any()
