"""The service as an ASGI application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version

from fastapi import FastAPI

from lookdown.gallery import Gallery
from lookdown.service import problems
from lookdown.service.limits import LimitsMiddleware
from lookdown.service.openapi import describe
from lookdown.service.prometheus import PrometheusMiddleware
from lookdown.service.routes import chips, learning, overview, page, search
from lookdown.service.security import SecurityMiddleware
from lookdown.service.served_gallery import ServedGallery
from lookdown.service.service_settings import ServiceSettings

__all__ = ["create_app"]

_ABOUT = (
    "Find every object like this one in overhead imagery, at a false-alarm rate you choose. Ids in paths are one "
    "percent-encoded segment; errors are problem JSON with a sentence that says what to do next."
)


def create_app(gallery: Gallery, settings: ServiceSettings | None = None) -> FastAPI:
    """Return a service for a gallery; its threads start and end with the application."""
    settings = settings or ServiceSettings()
    served = ServedGallery(gallery, settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with served.running():
            yield

    app = FastAPI(
        title="lookdown",
        version=version("lookdown"),
        description=_ABOUT,
        docs_url=None,  # the page with the documentation would come from another site
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    app.state.served = served
    app.openapi = partial(describe, app, settings)  # type: ignore[method-assign]
    problems.install(app, gallery.path)
    for part in (search, chips, learning, overview, page):
        app.include_router(part.router)
    app.add_middleware(LimitsMiddleware, settings=settings)  # each goes around those before it
    app.add_middleware(SecurityMiddleware, settings=settings)
    app.add_middleware(PrometheusMiddleware, instruments=served.instruments)
    return app
