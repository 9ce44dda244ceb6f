"""A Ray cluster: each job gives one result, and errors are sentences."""

from __future__ import annotations

import builtins
import logging
import os
import pickle
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.gallery.scale.ray_nodes import RayNodes

from lookdown.errors import GalleryError, MissingExtraError, WorkersError
from lookdown.gallery.scale import ray_cluster as module
from lookdown.gallery.scale.ray_cluster import ray_cluster


def square(number: int) -> tuple[int, int]:
    return number**2, os.getpid()


def unlucky(number: int) -> int:
    if number == 3:
        raise GalleryError("the disk is full; free it")
    if number == 5:
        raise ZeroDivisionError("by nobody's fault")
    return number


def test_jobs_come_back_once_from_processes_of_the_nodes(nodes: RayNodes) -> None:
    import ray

    with ray_cluster(nodes.address) as cluster:
        assert cluster.cpus == 2
        done = dict(cluster.map(square, range(7)))
        assert {place: value for place, (value, _) in done.items()} == {place: place**2 for place in range(7)}
        assert os.getpid() not in {pid for _, pid in done.values()}
        shared = cluster.share(np.arange(5))
        assert ray.get(shared).sum() == 10
    assert not ray.is_initialized()


def test_what_fails_on_a_node_is_told_with_its_name(nodes: RayNodes) -> None:
    with ray_cluster(nodes.address) as cluster:
        with pytest.raises(WorkersError, match=f"on {socket.gethostname()}: the disk is full; free it"):
            list(cluster.map(unlucky, [3]))
        with pytest.raises(WorkersError, match=r"failed: by nobody's fault; check that the same lookdown") as failed:
            list(cluster.map(unlucky, [5]))
    assert "in unlucky" in failed.value.__notes__[0]


def test_a_session_of_the_caller_stays(nodes: RayNodes) -> None:
    import ray

    ray.init(nodes.address, logging_level=logging.ERROR, log_to_driver=False)
    try:
        with ray_cluster("ray") as cluster:
            assert cluster.cpus == 2
        assert ray.is_initialized()
    finally:
        ray.shutdown()


def test_the_address_may_come_from_the_environment(nodes: RayNodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", nodes.address)
    with ray_cluster("ray") as cluster:
        assert cluster.cpus == 2


@pytest.mark.server
def test_without_an_address_one_runs_on_this_machine_and_ends_even_after_an_error() -> None:
    import ray

    with pytest.raises(KeyError, match="mine"), ray_cluster("ray") as cluster:  # noqa: PT012
        (raylet,) = (node["NodeManagerAddress"] for node in ray.nodes())  # type: ignore[no-untyped-call]
        assert raylet == "127.0.0.1"
        assert not listens_beyond_loopback()
        raise KeyError("mine", cluster)
    assert not ray.is_initialized()


def listens_beyond_loopback() -> set[str]:
    """Return the addresses, as the system writes them, that processes of Ray on this machine can be reached at."""
    listening = {}
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A":
                listening[words[9]] = words[1].partition(":")[0]
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if "ray" in (process / "cmdline").read_text().split("\0")[0]:
                found |= {str(place.readlink()) for place in (process / "fd").iterdir()}
        except OSError:
            continue
    open_to = {listening[name[8:-1]] for name in found if name.startswith("socket:[") and name[8:-1] in listening}
    assert open_to
    return open_to - {"0100007F", "0000000000000000FFFF00000100007F"}


@pytest.mark.parametrize("address", ["127.0.0.1:{port}", "ray://127.0.0.1:{port}", "nonsense"])
def test_a_cluster_that_is_away_is_a_sentence(address: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        named = address.format(port=free.getsockname()[1])
    told = rf"Ray at {named} cannot be had: .*; start it with `ray start --head`"
    with pytest.raises(WorkersError, match=told), ray_cluster(named):
        pass


@pytest.mark.parametrize("failures", [1, 3])
def test_a_door_that_fails_to_open_is_tried_again(failures: int, monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    tries: list[str] = []

    def init(address: str, **options: Any) -> None:
        tries.append(address)
        if len(tries) <= failures:
            raise ConnectionAbortedError("Initialization failure from server:\nTraceback")

    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setattr(module, "_require_listener", lambda address: None)
    if failures == module._CONNECT_TRIES:
        with pytest.raises(WorkersError, match="Ray at ray://host:10001 cannot be had: Initialization failure from"):
            module._connect("ray://host:10001")
    else:
        module._connect("ray://host:10001")
        assert len(tries) == failures + 1


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def without(name: str, *arguments: Any, **options: Any) -> Any:
        if name == "lance_ray":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return original(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    told = r"work on Ray needs .* pip install 'lookdown\[ray\]'"
    with pytest.raises(MissingExtraError, match=told), ray_cluster("ray"):
        pass


def test_work_on_a_node_answers_with_results_and_with_what_a_user_can_mend() -> None:
    jobs = np.array([pickle.dumps(number) for number in (2, 3, 5)], object)
    done = module._run({"index": np.arange(3), "job": jobs}, unlucky)
    first, *others = (pickle.loads(result) for result in done["result"])
    assert first == 2
    assert [type(other) for other in others] == [WorkersError, WorkersError]
