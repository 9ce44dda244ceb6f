"""A real Milvus server for tests and benchmarks: the binary of the `milvus` wheel, in a folder that is thrown away."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

__all__ = ["RunningMilvus", "why_not"]

_PATIENCE = 180.0  # seconds, for a machine that is busy with other things
# The server dies with the thread that started it, even if the process is killed: the kernel sends it the same signal.
_TIED = "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); os.execv(sys.argv[1], sys.argv[1:])"


def why_not() -> str | None:
    """Return why the server cannot run here, None where it can."""
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        return "the Milvus server of the tests is built for Linux on x86-64"
    try:
        import milvus  # noqa: F401
    except ImportError:
        return "the Milvus server is not installed; run: pip install milvus==2.3.5"
    return None


class RunningMilvus:
    """One server; killed and started again it has the same address and the same data.

    binaries: a folder to unpack the programs into, once for all servers of a session.
    settings: of the configuration that comes with the wheel, such as `authorization_enabled` or `tls_mode`.
    """

    def __init__(self, folder: Path, binaries: Path, **settings: Any) -> None:
        import milvus

        self._folder, self._binaries = folder, binaries / "bin"
        milvus._initialize_data_files(str(binaries))
        config = milvus.MilvusServerConfig(data_dir=str(folder))
        ports = [name for name in config.configurable_items if name.endswith("_port")]
        self.port, self._health, client, peer, *others = free_ports(4 + len(ports))
        for name, port in zip(ports, others, strict=True):
            config.set(name, port)
        for name, value in ({"proxy_port": self.port} | settings).items():
            config.set(name, value)
        config.resolve()
        # Its own etcd listens at two ports that are always the same, unless it is told otherwise.
        lines = [
            f"{kind}-{which}-urls: http://127.0.0.1:{port}"
            for which, port in (("client", client), ("peer", peer))
            for kind in ("listen", "advertise" if which == "client" else "initial-advertise")
        ]
        (folder / "etcd.yaml").write_text("\n".join([*lines, f"initial-cluster: default=http://127.0.0.1:{peer}", ""]))
        self._process: subprocess.Popen[bytes] | None = None
        self.scheme = "https" if settings.get("tls_mode") else "http"
        self.start()

    @property
    def uri(self) -> str:
        """Where it listens."""
        return f"{self.scheme}://localhost:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it is well."""
        environment = os.environ | {
            "DEPLOY_MODE": "STANDALONE",
            "ETCD_CONFIG_PATH": str(self._folder / "etcd.yaml"),
            "METRICS_PORT": str(self._health),
            "MILVUS_RUN_DIR": str(self._folder / "run"),
            "LD_LIBRARY_PATH": str(self._binaries),
        }
        command = [sys.executable, "-c", _TIED, str(self._binaries / "milvus"), "run", "standalone"]
        with (self._folder / "logs" / "output.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=self._folder, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self._until_well(self._process)

    def kill(self) -> None:
        """End it at once, as a lost machine does."""
        self._end(signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()  # its data are thrown away

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait()
            self._process = None

    def _until_well(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise RuntimeError(f"the Milvus server ended with {process.returncode}; see {self._folder / 'logs'}")
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self._health}/healthz", timeout=10) as answer:
                    if b"OK" in answer.read():
                        return
            except OSError:
                pass
            time.sleep(0.1)
        raise RuntimeError(f"the Milvus server was not well after {_PATIENCE:.0f} s; see {self._folder / 'logs'}")


def free_ports(count: int) -> list[int]:
    """Return ports of this machine that nobody listens at."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [found.getsockname()[1] for found in sockets]
    for found in sockets:
        found.close()
    return ports
