"""The device of a run: what its recipe asks for, and what this machine has."""

from __future__ import annotations

import torch

from lookdown.errors import InputError

__all__ = ["nearest_device", "refuse_missing_device"]


def refuse_missing_device(wanted: str) -> None:
    """Raise InputError if the device is not available: training on the CPU instead could take weeks."""
    if wanted != "auto" and nearest_device(wanted).type != wanted:
        raise InputError(
            f'device = "{wanted}" is not available on this machine; use one that has it, or start a run with '
            "--set device=auto"
        )


def nearest_device(wanted: str) -> torch.device:
    """Return the device of a recipe if it is available, else the CPU: a laptop can use what a GPU has trained."""
    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    return torch.device(next((kind for kind in available if available[kind] and wanted in (kind, "auto")), "cpu"))
