"""Real Ray nodes on loopback, started and stopped by whoever asks for them."""

from __future__ import annotations

import logging
import os
import warnings
from types import TracebackType
from typing import Any, Self

from lookdown.gallery.scale.ray_cluster import _LOOPBACK, _QUIET

os.environ.update(_QUIET | _LOOPBACK)  # read when Ray is imported


class RayNodes:
    """A head that does no work, and nodes with a processor each; each is a raylet with processes of its own."""

    def __init__(self, nodes: int, *, door: int | None = None) -> None:
        self._wanted = nodes
        self._door = {} if door is None else {"ray_client_server_port": door}  # for ray://
        self.nodes: list[Any] = []

    def __enter__(self) -> Self:
        from ray.cluster_utils import Cluster

        logging.getLogger("ray").setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Lance warns of forks
            self._cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **self._door, **_local()})
            for _ in range(self._wanted):
                self.add()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        import ray

        ray.shutdown()
        self._cluster.shutdown()  # type: ignore[no-untyped-call]  # by the ids of the processes that it has started

    @property
    def address(self) -> str:
        return str(self._cluster.address)

    def add(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.nodes.append(self._cluster.add_node(num_cpus=1, **_local()))

    def kill(self, node: Any) -> None:
        """Kill the raylet of a node and all that it runs, as a machine dies."""
        self.nodes.remove(node)
        self._cluster.remove_node(node, allow_graceful=False)


def _local() -> dict[str, Any]:
    return {"node_ip_address": "127.0.0.1", "include_dashboard": False, "object_store_memory": 100 * 1024 * 1024}
