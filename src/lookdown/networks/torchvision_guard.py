"""timm, imported safely: the only place that imports it, so that a mismatched torchvision is dealt with before.

The torchvision on PyPI is built for CUDA. Beside a CPU-only torch its compiled half does not load, and then its import
ends in "operator torchvision::nms does not exist" and takes timm down with it. What timm needs of torchvision is plain
Python, which asks only that the operators are declared; so they are, and only then. Beside a torch of the same build
nothing is done. `torchvision.io` and `torchvision.ops.nms` stay unusable where the declaration was needed.
"""

from __future__ import annotations

import sys

import torch

__all__ = ["timm"]

_BOXES_TO_KEEP = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_declared: list[torch.library.Library] = []  # a declaration lives as long as its library object


def _import_torchvision() -> None:
    try:
        import torchvision
    except RuntimeError as error:
        if "operator torchvision::nms does not exist" not in str(error):
            raise
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]  # half imported
        library = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
        for operator in ("nms", "qnms"):
            library.define(operator + _BOXES_TO_KEEP)  # type: ignore[no-untyped-call]
        _declared.append(library)
        import torchvision  # noqa: F401


_import_torchvision()

import timm  # noqa: E402  # after the guard, which is the point of this file
