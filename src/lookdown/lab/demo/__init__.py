"""The whole story on the synthetic world, from drawing it to a page of what was found."""

from __future__ import annotations

from lookdown.lab.demo.story import Listener, Told, tell
from lookdown.lab.demo.worlds import Scale

__all__ = ["Listener", "Scale", "Told", "tell"]
