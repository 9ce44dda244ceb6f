"""The routes of the service, one file for each subject; they hold no logic."""

from __future__ import annotations

from typing import Any

__all__ = ["PROBLEMS", "Responses", "form_with_image"]

Responses = dict[int | str, dict[str, Any]]

_PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}}
PROBLEMS: Responses = {
    "4XX": {"description": "what is wrong with the request, and what to do about it", "content": _PROBLEM},
    "5XX": {"description": "what is wrong with the service", "content": _PROBLEM},
}


def form_with_image(**fields: dict[str, Any]) -> dict[str, Any]:
    """Describe a form with an image and further fields, for OpenAPI."""
    image = {"type": "string", "format": "binary", "description": "JPEG, PNG, TIFF or WebP"}
    schema = {"type": "object", "required": ["image"], "properties": {"image": image, **fields}}
    return {"multipart/form-data": {"schema": schema}}
