"""The page: files of the package, found in a list of what there is and never by a path that a client sends."""

from __future__ import annotations

import hashlib
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.exceptions import HTTPException

__all__ = ["router"]

router = APIRouter(include_in_schema=False)

_FOLDER = Path(__file__).parents[1] / "page"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}


@router.head("/")
@router.get("/")
def start(request: Request) -> Response:
    """Return the page."""
    return _sent("index.html", request)


@router.get("/page/{name:path}")
def part(name: str, request: Request) -> Response:
    """Return a file of the page."""
    return _sent(name, request)


def _sent(name: str, request: Request) -> Response:
    there = {file.relative_to(_FOLDER).as_posix(): file for file in _FOLDER.rglob("*") if file.suffix in _TYPES}
    if name not in there:
        raise HTTPException(404)
    content = there[name].read_bytes()
    tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=_TYPES[there[name].suffix], headers=headers)
