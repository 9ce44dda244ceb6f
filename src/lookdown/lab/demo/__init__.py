"""The whole story on the synthetic world, from drawing it to a page of what was found."""

from __future__ import annotations

from lookdown.lab.demo.demo_worlds import DemoScale
from lookdown.lab.demo.story import DemoReport, Listener, run_demo

__all__ = ["DemoReport", "DemoScale", "Listener", "run_demo"]
