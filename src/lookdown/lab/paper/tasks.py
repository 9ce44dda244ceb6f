"""The four retrieval tasks of the paper, and the data that may stand for its data sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lookdown.chips.protocols import conventional, uda
from lookdown.lab.paper.domains import Protocol
from lookdown.lab.paper.paper_split import PaperProtocol

__all__ = ["MAR", "SHIPS", "TASKS", "UDA_MAR", "UDA_SHIPS", "Task"]

PaperSet = Literal["FGSRSI", "MAR"]


@dataclass(frozen=True, slots=True)
class Task:
    """A data set of the paper; queries show classes that were trained on, or, for adaptation, classes that were not."""

    images: PaperSet
    unseen: bool

    @property
    def name(self) -> PaperProtocol:
        """As the paper calls it."""
        return f"{'UDA-' if self.unseen else ''}CBRSOR-{self.images}"  # type: ignore[return-value]

    @property
    def protocol(self) -> Protocol:
        """How chips are divided: whole places have one role."""
        return uda if self.unseen else conventional


SHIPS, MAR = Task("FGSRSI", unseen=False), Task("MAR", unseen=False)
UDA_SHIPS, UDA_MAR = Task("FGSRSI", unseen=True), Task("MAR", unseen=True)
TASKS = SHIPS, MAR, UDA_SHIPS, UDA_MAR
