"""The description of the API, with what FastAPI cannot see by itself: bodies that are read by hand, and the token."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from lookdown.service.schemas import ProblemDetails, SearchRequest
from lookdown.service.service_settings import ServiceSettings

__all__ = ["describe"]

_PLACE = "#/components/schemas/{model}"


def describe(app: FastAPI, settings: ServiceSettings) -> dict[str, Any]:
    """Return the description, as /openapi.json shows it."""
    if app.openapi_schema is None:
        told = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        _, more = models_json_schema(
            [(SearchRequest, "validation"), (ProblemDetails, "validation")], ref_template=_PLACE
        )
        components = told.setdefault("components", {})
        components.setdefault("schemas", {}).update(more["$defs"])
        if settings.token is not None:
            components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            told["security"] = [{"token": []}]
        app.openapi_schema = told
    return app.openapi_schema
