"""Ray, for as long as it is needed: the cluster that an address names, or one that is started on this machine."""

from __future__ import annotations

import logging
import os
import pickle
import socket
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from lookdown.errors import LookdownError, MissingExtraError, WorkersError

__all__ = ["RAY", "Workers", "workers_at"]

J = TypeVar("J")
R = TypeVar("R")

RAY = "ray"  # instead of an address: that of RAY_ADDRESS, else this machine
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is told to anybody
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # as Ray will have it anyway, and warns of until then
}
_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}  # what is started here can be reached from here only
_PATIENCE = 10.0  # seconds
_TRIES = 3
_NEXT = (
    "start it with `ray start --head`; host:6379 is for machines that have joined by `ray start --address`, others "
    "come in by ray://host:10001"
)
_ALIKE = (
    "see that the same lookdown, with the same extras, is installed on every node, and run the same again: what was "
    "added before is kept"
)
_LOGS = "see its logs in /tmp/ray"


@dataclass(frozen=True, slots=True)
class Workers:
    """A cluster that can be given work."""

    address: str
    processors: int

    @property
    def by_the_door(self) -> bool:
        """Whether we came in by ray://, from a machine that is none of the nodes."""
        import ray

        return bool(ray.util.client.ray.is_connected())  # type: ignore[no-untyped-call]

    def share(self, value: Any) -> Any:
        """Send something to all machines, once; `ray.get` of what is returned is the thing."""
        import ray

        return ray.put(value)

    def spread(self, jobs: Sequence[J], work: Callable[[J], R]) -> Iterator[tuple[int, R]]:
        """Do work for each job, on a processor each, and yield what came of it with the job's number, as they end.

        Jobs that a machine had in hand when it was lost are done again by others. They are tasks, not actors: an actor
        that is to start again waits for a processor that the others never give back.
        """
        import ray

        packed = [{"number": number, "job": pickle.dumps(job)} for number, job in enumerate(jobs)]
        outcomes: Iterable[tuple[int, bytes]]
        try:
            if self.by_the_door:  # Ray Data runs on nodes only, so one of them takes our part
                task = ray.remote(num_cpus=0)(_all_outcomes).remote(packed, work)
                whole: list[tuple[int, bytes]] = ray.get(task)
                outcomes = whole
            else:
                outcomes = _outcomes(packed, work)
            for number, outcome in outcomes:
                result = pickle.loads(outcome)  # of our own code, wherever that ran
                if isinstance(result, WorkersError):
                    raise result
                yield number, result
        except ray.exceptions.RayError as error:
            raise WorkersError(f"work on Ray ({self.address}) failed: {_reason(error)}; {_ALIKE}") from error


@contextmanager
def workers_at(address: str) -> Iterator[Workers]:
    """Have a cluster at hand; what was begun for this ends with it, and a session of the caller's own stays."""
    named = os.environ.get("RAY_ADDRESS") if address == RAY else address
    quiet = _QUIET if named else _QUIET | _LOOPBACK
    os.environ.update({name: value for name, value in quiet.items() if name not in os.environ})
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Ray Data warns of its own defaults
            import lance_ray  # noqa: F401
            import ray
            import ray.data

            context = ray.data.DataContext.get_current()
    except ModuleNotFoundError as error:
        raise MissingExtraError("work on Ray", "ray") from error
    begun = not ray.is_initialized()
    try:
        if begun:
            context.enable_progress_bars = context.print_on_execution_start = False
            logging.getLogger("ray.data").setLevel(logging.ERROR)
            _connect(named)
        resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
        yield Workers(address, max(1, int(resources.get("CPU", 1))))
    finally:
        if begun:
            ray.shutdown()


def _connect(named: str | None) -> None:
    import ray

    options: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Lance warns of forks; those of Ray become other programs at once
            if not named:
                ray.init("local", include_dashboard=False, _node_ip_address="127.0.0.1", **options)
                return
            _knock(named)
            for left in reversed(range(_TRIES)):
                try:
                    ray.init(named, **options)
                    return
                except ConnectionAbortedError:  # the process behind the door of ray:// died as it was forked
                    ray.shutdown()
                    if not left:
                        raise
    except (OSError, RuntimeError, ValueError, AssertionError) as error:  # whichever step of it fails
        where = f"at {named}" if named else "on this machine"
        raise WorkersError(f"Ray {where} cannot be had: {_reason(error)}; {_NEXT if named else _LOGS}") from error


def _knock(address: str) -> None:
    """Raise if nobody is there: Ray itself would go on trying for minutes."""
    place = urlsplit(address if "://" in address else f"//{address}")
    port = place.port or (10001 if place.scheme == "ray" else None)
    if place.hostname and port:
        socket.create_connection((place.hostname, port), _PATIENCE).close()


def _outcomes(packed: list[dict[str, Any]], work: Callable[[Any], Any]) -> Iterator[tuple[int, bytes]]:
    import ray.data

    todo = ray.data.from_items(packed, override_num_blocks=len(packed))  # a block a job
    done = todo.map_batches(partial(_done, work=work), batch_size=None, batch_format="numpy", num_cpus=1)
    for row in done.iter_rows():
        yield row["number"], row["result"]


def _all_outcomes(packed: list[dict[str, Any]], work: Callable[[Any], Any]) -> list[tuple[int, bytes]]:
    """Return the outcomes at once; it runs on a node."""
    return [*_outcomes(packed, work)]


def _done(batch: dict[str, NDArray[Any]], work: Callable[[Any], Any]) -> dict[str, NDArray[Any]]:
    """Do the work on a node; what goes wrong is told with the name of the node."""
    results = np.empty(len(batch["job"]), object)
    for place, job in enumerate(batch["job"]):
        try:
            result = work(pickle.loads(job))
        except LookdownError as error:
            result = WorkersError(f"on {socket.gethostname()}: {error}")
        except Exception as error:  # Ray would wrap it in pages of its own
            result = WorkersError(f"work on {socket.gethostname()} failed: {_reason(error)}; {_ALIKE}")
            result.add_note(traceback.format_exc())
        results[place] = pickle.dumps(result)
    return {"number": batch["number"], "result": results}


def _reason(error: BaseException) -> str:
    """Return what went wrong, in a line."""
    error = getattr(error, "cause", None) or error  # of what failed on a node
    told = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    lines = told.strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".")
