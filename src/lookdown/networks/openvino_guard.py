"""OpenVINO, imported without its telemetry: the only place that imports it, and before nncf.

Both report to their maker over the network from their import on, unless a package that they merely try to import is
not there. lookdown works on closed networks and reports to nobody; so for its process that package is not there.
"""

from __future__ import annotations

import sys

__all__ = ["openvino"]

sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]  # its import fails from now on

import openvino  # noqa: E402  # after the guard, which is the point of this file

# Where absl is installed OpenVINO imports it, and its log handler later closes the stream that was sys.stderr now, be
# it a test's or a notebook's. The process's own it leaves open.
if "absl.logging" in sys.modules:
    sys.modules["absl.logging"].get_absl_handler().python_handler.stream = sys.__stderr__
