"""One seed, and from it a number for every place in a run: nothing depends on what was drawn before."""

from __future__ import annotations

import hashlib

__all__ = ["derived_seed"]


def derived_seed(seed: int, *place: int | str) -> int:
    """Return a seed for a place in a run, such as (stage, epoch, step)."""
    text = "/".join(str(part) for part in (seed, *place))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1
