"""The curves of a run for TensorBoard, if it is installed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lookdown import atomic

__all__ = ["TensorBoard"]


class TensorBoard:
    """Writes the records of metrics.jsonl to RUN/tensorboard as well; without the package it does nothing."""

    def __init__(self, folder: Path, *, after: int) -> None:
        """Begin, or go on after an epoch: points of later epochs are dropped."""
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            self._writer = None
            return
        self._writer = SummaryWriter(str(folder), purge_step=after + 1)

    def log(self, record: Mapping[str, float]) -> None:
        """Add the points of an epoch."""
        if self._writer is None:
            return
        with atomic.explained(self._writer.log_dir, "free the disk"):
            for name, value in record.items():
                if name != "epoch":
                    self._writer.add_scalar(name, value, int(record["epoch"]))
            self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.close()
