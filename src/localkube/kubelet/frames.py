"""The messages between server and launcher: a length, JSON, and file descriptors.

    4 bytes length, big-endian | JSON

Descriptors are sent as ancillary data of the length's bytes. The kernel never delivers ancillary
data together with bytes of an earlier message, so they arrive with the message that they belong to.
"""

import array
import json
import socket
import struct
from typing import Any

Message = dict[str, Any]

LENGTH = struct.Struct("!I")
MOST_DESCRIPTORS = 32


def packed(message: Message) -> tuple[bytes, bytes]:
    """The length and the body."""
    body = json.dumps(message).encode()
    return LENGTH.pack(len(body)), body


def ancillary(descriptors: list[int]) -> list[tuple[int, int, bytes]]:
    if not descriptors:
        return []
    return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors).tobytes())]


def receive(sock: socket.socket) -> tuple[Message, list[int]] | None:
    """Waits for one message; None at the end of the stream."""
    descriptors: list[int] = []
    head = b""
    while len(head) < LENGTH.size:
        part, given = _part(sock, LENGTH.size - len(head))
        descriptors += given
        if not part:
            return None
        head += part
    (length,) = LENGTH.unpack(head)
    body = bytearray()
    while len(body) < length:
        more = sock.recv(length - len(body))
        if not more:
            return None
        body += more
    return json.loads(body), descriptors


def _part(sock: socket.socket, size: int) -> tuple[bytes, list[int]]:
    unit = array.array("i").itemsize
    room = socket.CMSG_SPACE(MOST_DESCRIPTORS * unit)
    part, notes, _, _ = sock.recvmsg(size, room, socket.MSG_CMSG_CLOEXEC)
    given = array.array("i")
    for level, kind, data in notes:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            given.frombytes(data[: len(data) - len(data) % unit])
    return part, list(given)
