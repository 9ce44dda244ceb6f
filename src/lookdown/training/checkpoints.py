"""Checkpoints: tensors as safetensors, the rest as JSON, written so that the last good one is never lost."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from lookdown import atomic

__all__ = ["MOST_CHECKPOINTS", "Checkpoint", "last_checkpoint", "write_checkpoint"]

_NAME = re.compile(r"epoch-(\d{5})\.json")
_KEPT = 2
MOST_CHECKPOINTS = _KEPT + 1  # on the disk, while one more is written


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """All that a run needs to go on after some epochs."""

    epoch: int  # finished ones, over both stages
    tensors: dict[str, Tensor]
    state: dict[str, Any]


def write_checkpoint(folder: Path, epoch: int, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
    """Write the state after `epoch` epochs, and remove all checkpoints but the last two.

    The JSON file is written last and holds a digest of the tensors, so a checkpoint that was cut short does not count.
    """
    advice = "free the disk, then `lookdown train --resume`; the checkpoint before it is still good"
    with atomic.explained(folder / f"epoch-{epoch:05d}", advice):
        folder.mkdir(parents=True, exist_ok=True)
        payload = save_tensors(dict(tensors))
        description = {"epoch": epoch, "state": dict(state), "sha256": hashlib.sha256(payload).hexdigest()}
        atomic.write_file(folder / f"epoch-{epoch:05d}.safetensors", payload)
        atomic.write_file(folder / f"epoch-{epoch:05d}.json", json.dumps(description) + "\n")
        for number in sorted(_epochs(folder))[:-_KEPT]:
            (folder / f"epoch-{number:05d}.json").unlink(missing_ok=True)
            (folder / f"epoch-{number:05d}.safetensors").unlink(missing_ok=True)


def last_checkpoint(folder: Path) -> Checkpoint | None:
    """Return the latest whole checkpoint, None where there is none; damaged ones are passed over."""
    for number in sorted(_epochs(folder), reverse=True):
        try:
            description = json.loads((folder / f"epoch-{number:05d}.json").read_text())
            payload = (folder / f"epoch-{number:05d}.safetensors").read_bytes()
            if description["sha256"] == hashlib.sha256(payload).hexdigest():
                return Checkpoint(int(description["epoch"]), load_tensors(payload), description["state"])
        except (OSError, ValueError, KeyError, TypeError, SafetensorError):
            continue
    return None


def _epochs(folder: Path) -> list[int]:
    if not folder.is_dir():
        return []
    return [int(match[1]) for path in folder.iterdir() if (match := _NAME.fullmatch(path.name))]
