"""The addresses of the service, one file a subject; no logic of their own."""

from __future__ import annotations

from typing import Any

__all__ = ["PROBLEMS", "Responses"]

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
