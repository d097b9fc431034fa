"""Outbox: the one writer of the stream from the server to the launcher.

Messages go out whole, and in the order in which they were put in. Nobody waits for room in the
socket's buffer: the outbox keeps what does not fit, and sends it later. A message whose first byte
has not been sent can be taken back; after that it goes out whole, whatever happens to the task that
has put it in.
"""

import asyncio
import errno
import os
import socket
from collections import deque
from collections.abc import Callable

from localkube.kubelet.frames import Message, ancillary, packed

_GONE = {errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN}  # the reader will see the end, too
# Not enough memory for the socket, or too many descriptors on their way: less of both is needed
# as soon as the launcher reads.
_LATER = {errno.ENOBUFS, errno.ENOMEM, errno.ETOOMANYREFS}
_PAUSE_S = 0.01


class Letter:
    def __init__(self, data: bytes, descriptors: list[int], refused: Callable[[OSError], None]):
        self.data = memoryview(data)
        self.descriptors = descriptors
        self.refused = refused
        self.begun = False

    def send(self, sock: socket.socket) -> None:
        sent = sock.sendmsg([self.data], ancillary(self.descriptors))
        self.begun = True
        self.close()  # the kernel has its own copies
        self.data = self.data[sent:]

    def close(self) -> None:
        while self.descriptors:
            os.close(self.descriptors.pop())


class Outbox:
    def __init__(self, sock: socket.socket) -> None:
        """`sock` does not block, and stays the caller's."""
        self._sock = sock
        self._letters: deque[Letter] = deque()
        self._loop = asyncio.get_running_loop()
        self._waits = False

    def put(
        self,
        message: Message,
        descriptors: list[int],
        refused: Callable[[OSError], None] = lambda error: None,
    ) -> Letter:
        """Takes over the descriptors. `refused` is called if the kernel does not take them."""
        letter = Letter(b"".join(packed(message)), descriptors, refused)
        self._letters.append(letter)
        if not self._waits:
            self._send()
        return letter

    def take_back(self, letter: Letter) -> bool:
        """False: it was sent, or its first part was."""
        if letter.begun or letter not in self._letters:
            return False
        self._letters.remove(letter)
        letter.close()
        return True

    def close(self) -> None:
        self._stop_waiting()
        while self._letters:
            self._letters.popleft().close()

    def _send(self) -> None:
        self._stop_waiting()
        while self._letters:
            letter = self._letters[0]
            try:
                letter.send(self._sock)
            except (BlockingIOError, InterruptedError):
                self._waits = True
                self._loop.add_writer(self._sock.fileno(), self._send)
                return
            except OSError as error:
                if error.errno in _GONE:
                    self.close()
                    return
                if error.errno in _LATER or letter.begun:
                    self._waits = True
                    self._loop.call_later(_PAUSE_S, self._send)
                    return
                self._letters.popleft().close()
                letter.refused(error)
            else:
                if not letter.data:
                    self._letters.popleft()

    def _stop_waiting(self) -> None:
        if self._waits and self._sock.fileno() >= 0:
            self._loop.remove_writer(self._sock.fileno())
        self._waits = False
