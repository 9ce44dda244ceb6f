"""Errors as problem JSON (RFC 9457): a status and a sentence that says what to do next, without paths of the server."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from lookdown.errors import (
    EngineError,
    GalleryBusyError,
    GalleryError,
    ImageError,
    InputError,
    LookdownError,
    NotCalibratedError,
    StorageError,
    UnsupportedOperationError,
)

__all__ = ["PROBLEMS", "Problem", "Responses", "body_of", "install", "of_error", "response_of", "too_busy", "unknown"]

Responses = dict[int | str, dict[str, Any]]  # of a route, in OpenAPI

MEDIA_TYPE = "application/problem+json"
_CONTENT = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}}
PROBLEMS: Responses = {
    "4XX": {"description": "what is wrong with the request, and what to do about it", "content": _CONTENT},
    "5XX": {"description": "what is wrong with the service", "content": _CONTENT},
}
_LOG = logging.getLogger("lookdown.service")
_MAX_CHARACTERS = 600  # of a sentence, which may repeat what a client sent
_PATH = re.compile(r"(?<![\w.:/-])(?:[A-Za-z]:)?[\\/](?:[^\s\\/;,:'\"`()]+[\\/])+([^\s\\/;,:'\"`()]*)")

# Status and kind of an error, by the nearest of its classes.
_STATUSES: Mapping[type[LookdownError], tuple[int, str]] = {
    GalleryBusyError: (409, "busy"),
    NotCalibratedError: (409, "not-calibrated"),
    EngineError: (503, "engine"),
    StorageError: (503, "storage"),
    GalleryError: (409, "gallery"),
    ImageError: (422, "image"),
    InputError: (422, "input"),
    UnsupportedOperationError: (422, "unsupported"),
    LookdownError: (500, "error"),
}
_SENTENCES = {
    404: "There is nothing at this address; see /openapi.json for what there is.",
    405: "This address does not take that method; see /openapi.json for what it takes.",
}


class Problem(HTTPException):
    """A request that cannot be answered; `detail` says what to do about it."""

    def __init__(self, status: int, kind: str, detail: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, detail, dict(headers or {}))
        self.kind = kind


def unknown(what: str, name: str) -> Problem:
    """Return the problem for a name that does not exist."""
    return Problem(404, "unknown", f"there is no {what} {name[:100]!r} here; it may have been removed meanwhile")


def too_busy(reason: str, seconds: int) -> Problem:
    """Return the problem for a request beyond a limit; the client should try again after `seconds`."""
    return Problem(429, "limit", f"{reason}; try again in {seconds} s", headers={"Retry-After": str(seconds)})


def of_error(error: LookdownError, folder: Path) -> Problem:
    """Turn an error of lookdown into a problem; the gallery's folder is reduced to its name."""
    status, kind = next(_STATUSES[base] for base in type(error).__mro__ if base in _STATUSES)
    if status >= 500:
        _LOG.error("a request failed", exc_info=error)
    headers = {"Retry-After": "2"} if kind == "busy" else None
    return Problem(status, kind, without_paths(str(error), folder), headers=headers)


def without_paths(sentence: str, folder: Path) -> str:
    """Reduce every path in a sentence to the name of its file."""
    for path in {str(folder), str(folder.absolute()), str(folder.resolve())} - {"."}:
        sentence = sentence.replace(path, folder.resolve().name)
    return _PATH.sub(lambda match: match[1] or "a folder", sentence)


def body_of(problem: HTTPException) -> dict[str, Any]:
    """Return the JSON of a problem."""
    detail = problem.detail if isinstance(problem, Problem) else _SENTENCES.get(problem.status_code, problem.detail)
    return {
        "type": f"urn:lookdown:{problem.kind}" if isinstance(problem, Problem) else "about:blank",
        "title": HTTPStatus(problem.status_code).phrase,
        "status": problem.status_code,
        "detail": str(detail)[:_MAX_CHARACTERS].encode("utf-8", "replace").decode(),
    }


def response_of(problem: HTTPException) -> Response:
    """Return the HTTP response for a problem."""
    content = json.dumps(body_of(problem), ensure_ascii=False)
    return Response(content, problem.status_code, headers=problem.headers, media_type=MEDIA_TYPE)


def install(app: FastAPI, folder: Path) -> None:
    """Answer with a problem where a route raises an error on purpose."""

    async def answer(request: Request, error: Exception) -> Response:
        if isinstance(error, LookdownError):
            return response_of(of_error(error, folder))
        if isinstance(error, RequestValidationError):
            return response_of(Problem(422, "input", sentence_of(error.errors())))
        assert isinstance(error, HTTPException)
        return response_of(error)

    for kind in (LookdownError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, answer)


def sentence_of(errors: Any) -> str:
    """Return the first errors of a validation, each with the name of its field."""
    sentences = []
    for error in list(errors)[:3]:
        field = ".".join(str(part)[:60] for part in error["loc"] if part not in ("body", "query", "path"))
        sentences.append(f"{field or 'the request'}: {error['msg'][:150]}")
    return "; ".join(sentences) or "the request cannot be read"
