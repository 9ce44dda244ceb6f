"""Ways to search vectors, one file each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, cast, get_args

from lookdown.errors import InputError
from lookdown.gallery.scale.milvus_server import MilvusServer
from lookdown.gallery.search.engines.engine import Engine, Lists, VectorStream
from lookdown.gallery.search.engines.exact import ExactEngine
from lookdown.gallery.store.snapshot import FilterColumns
from lookdown.suggestions import did_you_mean

__all__ = ["EXACT_ROWS", "EngineChoice", "EngineName", "chosen_engine", "make_engine"]

EngineName = Literal["auto", "exact", "ivf"]  # those that need nothing but memory
EngineChoice = EngineName | Literal["milvus"] | MilvusServer
EXACT_ROWS = 1_000_000  # up to which comparing with all of them is fast enough


def chosen_engine(choice: str | MilvusServer, uri: str | None = None) -> EngineName | MilvusServer:
    """Check the name of an engine; for `milvus`, return its server at `uri`, or at the address in the environment."""
    if isinstance(choice, MilvusServer):
        return choice
    if choice == "milvus":
        return MilvusServer.from_environment(uri)
    for name in get_args(EngineName):
        if choice == name and uri is None:
            return cast("EngineName", name)
        if choice == name:
            raise InputError(f"the engine {name} searches in this process and has no address; omit `uri`")
    raise InputError(f"there is no engine {choice!r}; {did_you_mean(choice, [*get_args(EngineName), 'milvus'])}")


def make_engine(
    kind: EngineName,
    stream: VectorStream,
    columns: FilterColumns,
    lists: Lists | Callable[[], Lists | None] | None = None,
) -> Engine:
    """Load vectors into an engine; `auto` is exact up to a million rows.

    lists: the `assignment` of an earlier approximate engine, or a function that reads it, called only if needed.
    """
    if kind not in get_args(EngineName):
        raise InputError(f"there is no engine {kind!r}; {did_you_mean(kind, get_args(EngineName))}")
    if kind == "exact" or (kind == "auto" and stream.rows <= EXACT_ROWS):
        return ExactEngine(stream, columns)
    from lookdown.gallery.search.engines.ivf import IVFEngine  # faiss: only where it is used

    return IVFEngine(stream, columns, lists() if callable(lists) else lists)
