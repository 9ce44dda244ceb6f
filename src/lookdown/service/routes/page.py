"""The page: the files in the folder `page` of the package."""

from __future__ import annotations

import mimetypes
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import Response
from fastapi.staticfiles import StaticFiles

__all__ = ["router"]

router = APIRouter(include_in_schema=False)

_FILES = StaticFiles(directory=Path(__file__).parents[1] / "page")
mimetypes.add_type("text/javascript", ".js")  # some systems register another type, which browsers refuse


@router.head("/")
@router.get("/")
@router.get("/page/{name:path}")
async def page_file(request: Request) -> Response:
    """Return a file of the page; StaticFiles refuses paths outside its folder."""
    response = await _FILES.get_response(request.path_params.get("name", "index.html"), request.scope)
    response.headers["Cache-Control"] = "no-cache"
    return response
