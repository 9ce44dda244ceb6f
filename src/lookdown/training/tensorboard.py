"""The curves of a run for TensorBoard, where that is installed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lookdown.errors import OutputError

__all__ = ["TensorBoard"]


class TensorBoard:
    """Writes what metrics.jsonl holds into RUN/tensorboard as well; without the package it does nothing."""

    def __init__(self, folder: Path, *, after: int) -> None:
        """Begin, or go on after an epoch: points of later epochs, from before the run was stopped, are dropped."""
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
        try:
            for name, value in record.items():
                if name != "epoch":
                    self._writer.add_scalar(name, value, int(record["epoch"]))
            self._writer.flush()
        except OSError as error:
            raise OutputError(f"the curves for TensorBoard cannot be written: {error}; free the disk") from error

    def close(self) -> None:
        """Let go of the file."""
        if self._writer is not None:
            self._writer.close()
