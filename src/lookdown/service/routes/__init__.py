"""The addresses of the service, one file a subject; no logic of their own."""

from __future__ import annotations

from typing import Any

__all__ = ["PROBLEMS", "Responses", "form_with_image"]

Responses = dict[int | str, dict[str, Any]]

PROBLEMS: Responses = {
    "4XX": {
        "description": "what is wrong with the request, and what to do about it",
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}},
    },
    "5XX": {
        "description": "what is wrong with the service",
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}},
    },
}


def form_with_image(**fields: dict[str, Any]) -> dict[str, Any]:
    """Describe a form: an image, and what may be said beside it."""
    image = {"type": "string", "format": "binary", "description": "JPEG, PNG, TIFF or WebP"}
    schema = {"type": "object", "required": ["image"], "properties": {"image": image, **fields}}
    return {"multipart/form-data": {"schema": schema}}
