"""How long work reports its progress to whoever called it."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Progress", "no_progress"]


class Progress(Protocol):
    """A function that long work calls now and then; it must be cheap, and must not raise."""

    def __call__(self, done: int, total: int | None, unit: str) -> None:
        """Report progress.

        done: how many are finished.
        total: how many there are in all, None where that is not known yet.
        unit: what is counted, in the plural: `chips`, `epochs`, `scenes`.
        """


def no_progress(done: int, total: int | None, unit: str) -> None:
    """Ignore the report: the default of every `progress` argument."""
