"""FGSC-23, ships in 23 classes: the same two layouts as FGSRSI-23."""

from __future__ import annotations

from lookdown.chips.sources.fgsrsi23 import read

__all__ = ["read"]
