"""Metrics of the service for Prometheus."""

from __future__ import annotations

import time

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["PrometheusMetrics", "PrometheusMiddleware"]

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_IMAGES = (1, 2, 4, 8, 16, 32, 64, 128)
_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")


class PrometheusMetrics:
    """The metrics of one service, in a registry of their own so that two services in one process stay apart."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        labels = ("method", "route")
        self.requests = Counter("lookdown_requests", "Requests answered", (*labels, "status"), registry=self.registry)
        self.seconds = Histogram(
            "lookdown_request_seconds", "Time to an answer", labels, buckets=_SECONDS, registry=self.registry
        )
        self.at_work = Gauge("lookdown_requests_at_work", "Requests being answered", registry=self.registry)
        self.batches = Histogram(
            "lookdown_embedding_batch_images", "Images in one pass", buckets=_IMAGES, registry=self.registry
        )
        self.chips = Gauge("lookdown_gallery_chips", "Chips in the gallery", registry=self.registry)

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self.registry)


class PrometheusMiddleware:
    """ASGI middleware that counts and times requests by route, never by a path that a client chose."""

    def __init__(self, app: ASGIApp, metrics: PrometheusMetrics) -> None:
        self.app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status = 0

        async def send_and_note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        start = time.perf_counter()
        with self._metrics.at_work.track_inprogress():
            try:
                await self.app(scope, receive, send_and_note_status)
            finally:
                route = getattr(scope.get("route"), "path", "none")
                method = scope["method"] if scope["method"] in _METHODS else "other"
                self._metrics.requests.labels(method, route, str(status)).inc()
                self._metrics.seconds.labels(method, route).observe(time.perf_counter() - start)
