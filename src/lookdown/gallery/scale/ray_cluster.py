"""A Ray cluster: one that an address names, or one that we start on this machine and stop again."""

from __future__ import annotations

import logging
import math
import os
import pickle
import socket
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from lookdown.adaptation.shards import Shards
from lookdown.errors import LookdownError, MissingExtraError, WorkersError
from lookdown.gallery.store.snapshot import Embeddings, Snapshot
from lookdown.gallery.store.table import ChipTable

__all__ = ["RayCluster", "RayShards", "ray_cluster", "ray_shards"]

J = TypeVar("J")
T = TypeVar("T")

_ANY = "ray"  # instead of an address: the cluster of RAY_ADDRESS, or else one on this machine
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # Ray's future default; without it Ray warns
}
_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}  # a cluster that we start listens on loopback only
_CONNECT_SECONDS = 10.0
_CONNECT_TRIES = 3
_SHARD_ROWS = 8_192, 262_144  # at least and at most: 64 MB of 64 numbers each
_START_RAY = (
    "start it with `ray start --head`; use host:6379 on machines that have joined by `ray start --address`, and "
    "ray://host:10001 on others"
)
_CHECK_NODES = (
    "check that the same lookdown, with the same extras, is installed on every node, and run the same again: what was "
    "added before is kept"
)


@dataclass(frozen=True, slots=True)
class RayCluster:
    """A cluster that we are connected to."""

    address: str
    cpus: int

    def share(self, value: Any) -> Any:
        """Put a value into Ray's object store, and return the reference for `ray.get` on a node."""
        import ray

        return ray.put(value)

    def map(self, work: Callable[[J], T], jobs: Sequence[J]) -> Iterator[tuple[int, T]]:
        """Run `work` on each job, one CPU each; yield the index of a job and its result, in the order they finish.

        Jobs of a node that dies run again on others. They are tasks, not actors: an actor waits for a free CPU before
        it restarts, and there may be none.
        """
        import ray

        packed = [{"index": index, "job": pickle.dumps(job)} for index, job in enumerate(jobs)]
        is_client = ray.util.client.ray.is_connected()  # type: ignore[no-untyped-call]  # connected by ray://
        try:
            # Ray Data does not run in a client, so a node runs it there.
            results = ray.get(ray.remote(num_cpus=0)(_list_results).remote(packed, work)) if is_client else None
            for index, encoded in _results(packed, work) if results is None else results:
                result = pickle.loads(encoded)  # written by `_run` on a node
                if isinstance(result, WorkersError):
                    raise result
                yield index, result
        except ray.exceptions.RayError as error:
            raise WorkersError(f"work on Ray ({self.address}) failed: {_reason(error)}; {_CHECK_NODES}") from error


@contextmanager
def ray_cluster(address: str) -> Iterator[RayCluster]:
    """Connect to the cluster at an address (`host:6379`, `ray://host:10001`, `ray`), and disconnect at the end.

    A connection that the caller has already is used and kept. A cluster that we start for `ray` is stopped.
    """
    named = os.environ.get("RAY_ADDRESS") if address == _ANY else address
    settings = _QUIET if named else _QUIET | _LOOPBACK
    os.environ.update({name: value for name, value in settings.items() if name not in os.environ})
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Ray Data warns of its own defaults
            import lance_ray  # noqa: F401
            import ray
            import ray.data

            context = ray.data.DataContext.get_current()
    except ModuleNotFoundError as error:
        raise MissingExtraError("work on Ray", "ray") from error
    connects = not ray.is_initialized()
    try:
        if connects:
            context.enable_progress_bars = context.print_on_execution_start = False
            logging.getLogger("ray.data").setLevel(logging.ERROR)
            _connect(named)
        resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
        yield RayCluster(address, max(1, int(resources.get("CPU", 1))))
    finally:
        if connects:
            ray.shutdown()


@contextmanager
def ray_shards(table: ChipTable, address: str, snapshot: Snapshot | None = None) -> Iterator[RayShards]:
    """Connect to a cluster that reads the embeddings of a gallery, as they are now or in a snapshot."""
    with ray_cluster(address) as cluster:
        yield RayShards(cluster, table, snapshot or table.snapshot())


class RayShards(Shards):
    """The embeddings of one version of the table; the nodes read runs of its rows."""

    def __init__(self, cluster: RayCluster, table: ChipTable, snapshot: Snapshot) -> None:
        self.shape = len(snapshot), snapshot.dimension
        self.dtype = np.dtype(np.float32)
        self._cluster, self._table, self._snapshot = cluster, table, snapshot

    def __getitem__(self, rows: slice | NDArray[np.integer]) -> Embeddings:
        if isinstance(rows, slice):
            return self._snapshot.embeddings(None if rows == slice(None) else np.arange(len(self))[rows])
        return self._snapshot.embeddings(np.asarray(rows, np.intp))

    def map(self, work: Callable[[Embeddings, int], T]) -> Iterator[T]:
        """Run `work` on each shard on some node; yield the results in the order of the rows."""
        least, most = _SHARD_ROWS
        size = min(max(least, math.ceil(len(self) / (2 * self._cluster.cpus))), most)
        jobs = [range(begin, min(begin + size, len(self))) for begin in range(0, len(self), size)]
        on_rows = _OnRows(self._table.location.uri, self._snapshot.version, self._table.location.storage_options, work)
        waiting: dict[int, T] = {}
        following = 0
        for index, result in self._cluster.map(on_rows, jobs):
            waiting[index] = result
            while following in waiting:
                yield waiting.pop(following)
                following += 1


@dataclass(frozen=True, slots=True)
class _OnRows:
    """What is sent to the nodes: the table, and the work on some of its rows."""

    uri: str
    version: int
    storage_options: dict[str, str]
    work: Callable[[Embeddings, int], Any]

    def __call__(self, rows: range) -> Any:
        import lance

        if "://" not in self.uri and not Path(self.uri).is_dir():
            raise WorkersError(
                f"there is no table at {self.uri}; put the gallery on a disk that every node has under the same path"
            )
        table = lance.dataset(self.uri, version=self.version, storage_options=self.storage_options or None)
        column = table.scanner(columns=["embedding"], offset=rows.start, limit=len(rows)).to_table()["embedding"]
        values = column.combine_chunks().flatten().to_numpy(zero_copy_only=False)
        return self.work(np.asarray(values, np.float32).reshape(len(rows), -1), rows.start)


def _connect(address: str | None) -> None:
    import ray

    options: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Lance warns of forks; Ray's forks replace their program at once
            if not address:
                ray.init("local", include_dashboard=False, _node_ip_address="127.0.0.1", **options)
                return
            _require_listener(address)
            for left in reversed(range(_CONNECT_TRIES)):
                try:
                    ray.init(address, **options)
                    return
                except ConnectionAbortedError:  # the server process of ray:// died as it was forked
                    ray.shutdown()
                    if not left:
                        raise
    except (OSError, RuntimeError, ValueError, AssertionError) as error:
        where, next_step = (f"at {address}", _START_RAY) if address else ("on this machine", "see its logs in /tmp/ray")
        raise WorkersError(f"Ray {where} cannot be had: {_reason(error)}; {next_step}") from error


def _require_listener(address: str) -> None:
    """Raise if nobody listens at the address: Ray itself would retry for minutes."""
    parts = urlsplit(address if "://" in address else f"//{address}")
    port = parts.port or (10001 if parts.scheme == "ray" else None)
    if parts.hostname and port:
        socket.create_connection((parts.hostname, port), _CONNECT_SECONDS).close()


def _results(packed: list[dict[str, Any]], work: Callable[[Any], Any]) -> Iterator[tuple[int, bytes]]:
    import ray.data

    jobs = ray.data.from_items(packed, override_num_blocks=len(packed))  # one block per job
    done = jobs.map_batches(partial(_run, work=work), batch_size=None, batch_format="numpy", num_cpus=1)
    for row in done.iter_rows():
        yield row["index"], row["result"]


def _list_results(packed: list[dict[str, Any]], work: Callable[[Any], Any]) -> list[tuple[int, bytes]]:
    return [*_results(packed, work)]


def _run(batch: dict[str, NDArray[Any]], work: Callable[[Any], Any]) -> dict[str, NDArray[Any]]:
    """Run jobs on a node; an error becomes a WorkersError that names the node."""
    results = np.empty(len(batch["job"]), object)
    for index, job in enumerate(batch["job"]):
        try:
            result = work(pickle.loads(job))
        except LookdownError as error:
            result = WorkersError(f"on {socket.gethostname()}: {error}")
        except Exception as error:  # Ray would wrap it in pages of its own
            result = WorkersError(f"work on {socket.gethostname()} failed: {_reason(error)}; {_CHECK_NODES}")
            result.add_note(traceback.format_exc())
        results[index] = pickle.dumps(result)
    return {"index": batch["index"], "result": results}


def _reason(error: BaseException) -> str:
    """Return the first line of an error, or of its cause on a node."""
    error = getattr(error, "cause", None) or error
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    lines = text.strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".")
