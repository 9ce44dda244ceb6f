"""The service as an ASGI application."""

from __future__ import annotations

from functools import partial
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from pydantic.json_schema import models_json_schema

from lookdown.gallery import Gallery
from lookdown.service import problems
from lookdown.service.prometheus import PrometheusMiddleware
from lookdown.service.protection import LimitsMiddleware, SecurityMiddleware
from lookdown.service.routes import chips, learning, overview, page, search
from lookdown.service.schemas import ProblemDetails, SearchBody
from lookdown.service.served_gallery import ServedGallery
from lookdown.service.service_settings import ServiceSettings

__all__ = ["create_app"]

_DESCRIPTION = (
    "Find every object like this one in overhead imagery, at a false-alarm rate you choose. Ids in paths are one "
    "percent-encoded segment; errors are problem JSON with a sentence that says what to do next."
)


def create_app(gallery: Gallery, settings: ServiceSettings | None = None) -> FastAPI:
    """Return a service for a gallery; its threads start and end with the application."""
    settings = settings or ServiceSettings()
    served = ServedGallery(gallery, settings)
    app = FastAPI(
        title="lookdown",
        version=version("lookdown"),
        description=_DESCRIPTION,
        docs_url=None,  # these pages load scripts from another site
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lambda app: served.running(),
    )
    app.state.served = served
    app.openapi = partial(_openapi, app, settings)  # type: ignore[method-assign]
    problems.install(app, gallery.path)
    for module in (search, chips, learning, overview, page):
        app.include_router(module.router)
    app.add_middleware(LimitsMiddleware, settings=settings)  # each middleware wraps those added before it
    app.add_middleware(SecurityMiddleware, settings=settings)
    app.add_middleware(PrometheusMiddleware, metrics=served.prometheus)
    return app


def _openapi(app: FastAPI, settings: ServiceSettings) -> dict[str, Any]:
    """Return the OpenAPI description, with bodies that routes parse themselves and the token, which FastAPI misses."""
    if app.openapi_schema is not None:
        return app.openapi_schema
    description = FastAPI.openapi(app)
    _, schemas = models_json_schema(
        [(SearchBody, "validation"), (ProblemDetails, "validation")], ref_template="#/components/schemas/{model}"
    )
    description["components"]["schemas"].update(schemas["$defs"])
    if settings.token is not None:
        description["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        description["security"] = [{"token": []}]
    return description
