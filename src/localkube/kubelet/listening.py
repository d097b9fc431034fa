"""The ports on which the processes of a pod listen, from /proc. Port forwarding connects only to
these: all pods share the machine's network, and other ports belong to others."""

import ipaddress
import os
import re
import socket
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

_LISTEN = "0A"
_SOCKET = re.compile(r"socket:\[(\d+)\]")


class Listening(NamedTuple):
    address: str
    port: int
    inode: int


def find(pids: Iterable[int], port: int) -> str | None:
    """The address to connect to, if one of the processes listens on the port."""
    wanted = [entry for entry in everything() if entry.port == port]
    if not wanted:
        return None
    own = {inode for pid in pids for inode in _inodes(pid)}
    for entry in wanted:
        if entry.inode in own:
            return _reachable(entry.address)
    return None


def everything() -> Iterator[Listening]:
    for name in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/net/{name}").read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == _LISTEN:
                address, _, port = fields[1].partition(":")
                yield Listening(_address(address), int(port, 16), int(fields[9]))


def _inodes(pid: int) -> Iterator[int]:
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return
    for name in names:
        try:
            found = _SOCKET.fullmatch(os.readlink(f"/proc/{pid}/fd/{name}"))
        except OSError:
            continue
        if found:
            yield int(found[1])


def _address(text: str) -> str:
    """The kernel writes words of four bytes in the machine's byte order, in hexadecimal."""
    words = [int(text[i : i + 8], 16) for i in range(0, len(text), 8)]
    raw = struct.pack(f"={len(words)}I", *words)
    family = socket.AF_INET if len(raw) == 4 else socket.AF_INET6
    return socket.inet_ntop(family, raw)


def _reachable(address: str) -> str:
    known = ipaddress.ip_address(address)
    if known.is_unspecified:
        return "127.0.0.1" if known.version == 4 else "::1"
    return address
