"""Where a run computes: what its recipe asks for, and what this machine has."""

from __future__ import annotations

import torch

from lookdown.errors import InputError

__all__ = ["nearest_device", "refuse_missing_device"]


def refuse_missing_device(wanted: str) -> None:
    """Refuse to train on a device that is not there: weeks on a CPU are seldom what was meant."""
    if wanted != "auto" and nearest_device(wanted).type != wanted:
        raise InputError(
            f'device = "{wanted}" is not to be had on this machine; use one that has it, or begin a run with '
            "--set device=auto"
        )


def nearest_device(wanted: str) -> torch.device:
    """Return the device of a recipe where it is there, else the CPU: what a GPU has trained, a laptop can use."""
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    return torch.device(next((kind for kind in there if there[kind] and wanted in (kind, "auto")), "cpu"))
