"""A digest of settings and tensors: equal for equal bytes on any machine, different after any change."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

__all__ = ["fingerprint"]


def fingerprint(settings: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> str:
    """Return a SHA-256 of the settings and of every tensor's name, type, shape and values, in the order of names."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for name in sorted(tensors):
        values = tensors[name].detach().cpu().contiguous()
        digest.update(f"\n{name} {values.dtype} {tuple(values.shape)}\n".encode())
        digest.update(values.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
