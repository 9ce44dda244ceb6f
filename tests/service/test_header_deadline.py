"""A header that does not arrive is not waited for."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest
from tests.service.processes import process

IMPATIENT = (
    "import sys; from lookdown.gallery import Gallery;"
    "from lookdown.service import ServiceSettings; from lookdown.service.server import serve;"
    "settings = ServiceSettings(port=0, header_seconds=0.5);"
    "serve(Gallery.open(sys.argv[1]), settings, lambda told: print(told, flush=True))"
)


@pytest.mark.kill
def test_a_header_that_does_not_arrive_is_not_waited_for(made: Path) -> None:
    whole = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with process("-c", IMPATIENT, str(made)) as (_, port):
        for begun in (b"", whole[:20], whole + whole[:20]):
            with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
                connection.sendall(begun)
                begin = time.monotonic()
                answer = b""
                while part := connection.recv(65_536):
                    answer += part
                assert 0.3 < time.monotonic() - begin < 10
                assert answer.count(b"200 OK") == (len(begun) > len(whole))
        with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
            for _ in range(2):  # what is kept waits longer than a header may take
                connection.sendall(whole)
                time.sleep(0.8)
                assert b"200 OK" in connection.recv(65_536)
