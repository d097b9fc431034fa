"""Ports that tests choose beforehand stay free until they are used."""

import socket
from pathlib import Path

import pytest

from testbed import processes
from testbed.processes import free_ports

_OUTGOING = Path("/proc/sys/net/ipv4/ip_local_port_range")


def test_ports_are_different_and_not_those_of_outgoing_connections() -> None:
    lowest = int(_OUTGOING.read_text().split()[0]) if _OUTGOING.exists() else 32_768
    ports = free_ports(50)
    assert len(set(ports)) == 50
    assert max(ports) < min(lowest, 30_000)


def test_a_port_that_somebody_has_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(processes, "_PORTS", range(port, port + 1))
        assert free_ports(1) == []
