"""Counters for Prometheus."""

from __future__ import annotations

import asyncio

import pytest
from starlette.types import Message, Receive, Scope, Send

from lookdown.service.prometheus import PrometheusMetrics, PrometheusMiddleware


def test_two_services_count_apart_and_odd_methods_go_together() -> None:
    first, second = PrometheusMetrics(), PrometheusMetrics()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})

    async def receive() -> Message:
        raise AssertionError

    async def send(message: Message) -> None:
        pass

    for method in ("GET", "BREW", "X" * 99):
        asyncio.run(PrometheusMiddleware(app, first)({"type": "http", "method": method, "path": "/x"}, receive, send))
    told = first.text().decode()
    assert 'lookdown_requests_total{method="GET",route="none",status="204"} 1.0' in told
    assert 'lookdown_requests_total{method="other",route="none",status="204"} 2.0' in told
    assert "lookdown_requests_at_work 0.0" in told
    assert 'status="204"' not in second.text().decode()


def test_one_that_fails_is_counted_too() -> None:
    metrics = PrometheusMetrics()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise KeyError

    async def never(*_: object) -> Message:
        raise AssertionError

    with pytest.raises(KeyError):
        asyncio.run(PrometheusMiddleware(app, metrics)({"type": "http", "method": "GET"}, never, never))  # type: ignore[arg-type]
    assert 'status="0"' in metrics.text().decode()
