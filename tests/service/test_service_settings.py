"""What a service allows."""

from __future__ import annotations

from typing import Any

import pytest

from lookdown.errors import InputError
from lookdown.service.service_settings import ServiceSettings, is_loopback


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "example.org", "128.0.0.1"])
def test_an_address_that_others_reach_needs_a_token_that_cannot_be_guessed(host: str) -> None:
    assert not is_loopback(host)
    with pytest.raises(InputError, match="a token is needed; set LOOKDOWN_TOKEN"):
        ServiceSettings(host=host)
    with pytest.raises(InputError, match="at least 16 characters"):
        ServiceSettings(host=host, token="secret")
    assert ServiceSettings(host=host, token="0123456789abcdef").token


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "localhost"])
def test_this_machine_alone_needs_none(host: str) -> None:
    assert is_loopback(host)
    assert ServiceSettings(host=host).token is None


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"access": "all"}, "read, learn or write"),
        ({"port": 70_000}, "0 to 65535"),
        ({"token": " "}, "printable ASCII"),
        ({"token": ""}, "printable ASCII"),
        ({"token": "0123456789abcdef "}, "without spaces at its ends"),
        (
            {"hosts": ("archive.example", "archive.example:8443")},
            "'archive.example:8443' is not a host name; .* without a port",
        ),
        ({"hosts": ("https://archive.example",)}, "is not a host name"),
        ({"token": "schlüssel"}, "printable ASCII"),
        ({"tile_url": "https://t.example; script-src *"}, "tile_url"),
        ({"tile_url": "javascript:alert(1)"}, "tile_url"),
        ({"tile_url": "https://a.example/ 'unsafe-inline'"}, "tile_url"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        ServiceSettings(**wrong)


def test_names_and_addresses_may_be_hosts() -> None:
    hosts = ("archive.example", "Archive", "10.0.0.1", "fe80::1", "my_host")
    assert ServiceSettings(hosts=hosts).hosts == hosts


def test_access_is_an_order_and_tiles_have_an_origin() -> None:
    learn = ServiceSettings(access="learn", tile_url="https://tiles.example:8443/{z}/{x}/{y}.png")
    assert [learn.allows(access) for access in ("read", "learn", "write")] == [True, True, False]
    assert learn.tile_origin == "https://tiles.example:8443"
    assert ServiceSettings().tile_origin is None
