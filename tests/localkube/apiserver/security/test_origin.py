import pytest

from localkube.apiserver.request import Request
from localkube.apiserver.security.origin import refuse_foreign

HOSTS = frozenset({"box.example.org", "10.1.2.3"})


def _status(origins: frozenset[str] = frozenset(), **headers: str) -> int | None:
    refusal = refuse_foreign(Request("GET", "/", headers=headers), HOSTS, origins)
    return None if refusal is None else refusal.status


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1:6443",
        "127.8.9.1:1",
        "localhost",
        "LOCALHOST:6443",
        "localhost.",
        "[::1]",
        "[::1]:6443",
        "kubernetes.default.svc.cluster.local",
        "box.example.org:443",
        "10.1.2.3:6443",
    ],
)
def test_our_own_names_are_let_in(host: str) -> None:
    assert _status(host=host) is None


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "evil.example:6443",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "evil.example#127.0.0.1",
        "127.0.0.1@evil.example",
        "127.0.0.1:x",
        "[::1]evil.example",
        "[::2]:6443",
        "::1",
        "192.168.0.1",
        "0.0.0.0",
        "2130706433",
        "localhost, localhost",
        "localhost:1:2",
        "lоcalhost",  # with a Cyrillic letter
    ],
)
def test_other_names_are_misdirected(host: str) -> None:
    assert _status(host=host) == 421


def test_a_request_without_a_host_is_misdirected() -> None:
    assert _status() == 421


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "",
        "https://127.0.0.1",
        "https://127.0.0.1:6444",
        "http://127.0.0.1:6443",
        "https://localhost:6443",
    ],
)
def test_web_pages_are_kept_out(origin: str) -> None:
    assert _status(host="127.0.0.1:6443", origin=origin) == 403


def test_the_servers_own_address_is_no_page() -> None:
    assert _status(host="127.0.0.1:6443", origin="https://127.0.0.1:6443") is None
    assert _status(host="evil.example", origin="https://evil.example") == 421


def test_a_page_that_is_allowed_comes_in() -> None:
    allowed = frozenset({"https://console.example"})
    assert _status(allowed, host="127.0.0.1", origin="https://console.example") is None
    assert _status(allowed, host="127.0.0.1", origin="https://console.example:1") == 403


def test_no_refusal_invites_other_origins() -> None:
    for headers in ({"host": "evil"}, {"host": "localhost", "origin": "https://evil"}):
        refusal = refuse_foreign(Request("OPTIONS", "/", headers=headers), HOSTS)
        assert refusal is not None
        assert not [name for name, _ in refusal.headers if name.lower().startswith("access-")]
