"""A gallery behind HTTP: the API and the page."""

from __future__ import annotations

from lookdown.service.app import create_app
from lookdown.service.service_settings import ServiceSettings

__all__ = ["ServiceSettings", "create_app"]
