"""Ports: fixed for each cluster, and a clear word when one cannot be had."""

import socket
from collections.abc import Iterator

import pytest

from gpupool.local.home import CannotUse
from gpupool.local.ports import choose_port, own_port


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


@pytest.fixture
def free() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port: int = server.getsockname()[1]
        return port


def test_the_wanted_port_comes_first_then_the_last_one(free: int) -> None:
    assert choose_port("a", wanted=free, last=1) == free
    assert choose_port("a", wanted=0, last=1) == 0
    assert choose_port("a", wanted=None, last=free) == free


def test_a_wanted_port_in_use_is_refused(taken: int) -> None:
    with pytest.raises(CannotUse) as refused:
        choose_port("a", wanted=taken, last=None)
    assert str(refused.value) == (
        f"Port {taken} on 127.0.0.1 cannot be used: it is in use. "
        "Choose another with --port, or leave the flag out."
    )


def test_a_last_port_in_use_is_an_error(taken: int) -> None:
    with pytest.raises(CannotUse, match="its kubeconfig says so"):
        choose_port("a", wanted=None, last=taken)


def test_a_new_cluster_gets_the_port_of_its_name() -> None:
    assert own_port("default") == 16443
    assert own_port("a") == own_port("a") != own_port("b")


def test_a_new_cluster_takes_any_port_when_its_own_is_in_use(
    taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpupool.local.ports.own_port", lambda name: taken)
    assert choose_port("a", wanted=None, last=None) == 0
