"""Ways to search vectors, one file each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, cast, get_args

from lookdown.errors import InputError
from lookdown.gallery.scale.milvus_server import MilvusServer
from lookdown.gallery.search.engines.engine import Engine, Lists, VectorStream
from lookdown.gallery.search.engines.exact import Exact
from lookdown.gallery.store.snapshot import FilterColumns

__all__ = ["MANY", "EngineChoice", "EngineName", "chosen_engine", "make_engine"]

EngineName = Literal["auto", "exact", "ivf"]  # those that need nothing but memory
EngineChoice = EngineName | Literal["milvus"] | MilvusServer
MANY = 1_000_000  # rows up to which comparing with all of them takes a blink


def chosen_engine(choice: str | MilvusServer, uri: str | None = None) -> EngineName | MilvusServer:
    """Check a name, and tell where `milvus` is: at the address that is given, or as the environment has it."""
    if isinstance(choice, MilvusServer):
        return choice
    if choice == "milvus":
        return MilvusServer.from_environment(uri)
    for name in get_args(EngineName):
        if choice == name and uri is None:
            return cast("EngineName", name)
        if choice == name:
            raise InputError(f"the engine {name} searches in this process and has no address; leave --uri out")
    raise InputError(f"engine must be one of {', '.join(get_args(EngineName))} and milvus, got {choice!r}")


def make_engine(
    kind: EngineName,
    stream: VectorStream,
    columns: FilterColumns,
    lists: Lists | Callable[[], Lists | None] | None = None,
) -> Engine:
    """Load vectors into an engine; `auto` is exact up to a million rows.

    `lists` is what an approximate engine had as its `assignment`, or a function that reads it, called if needed.
    """
    if kind not in get_args(EngineName):
        raise InputError(f"engine must be one of {', '.join(get_args(EngineName))}, got {kind!r}")
    if kind == "exact" or (kind == "auto" and stream.rows <= MANY):
        return Exact(stream, columns)
    from lookdown.gallery.search.engines.ivf import IVF  # faiss: only where it is used

    return IVF(stream, columns, lists() if callable(lists) else lists)
