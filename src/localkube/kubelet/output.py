"""Output: passes on what a run of a container prints, to the log and to attached clients.

A program that prints too fast, or whose attached client does not keep up, is slowed down: its pipe
is not read for a while. Otherwise the server would have no time for anything else."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from localkube.kubelet.container_log import LogFile
from localkube.kubelet.descriptors import Reader
from localkube.kubelet.pace import Pace

_WINDOW_S = 0.1
_BYTES_PER_WINDOW = 1024 * 1024
_MOST_BEFORE = 256 * 1024


class Listener(Protocol):
    """An attached client."""

    def heard(self, stream: bytes, data: bytes) -> None: ...

    def over(self) -> None: ...


class Output:
    def __init__(self, log: LogFile, pace: Pace) -> None:
        """`pace`: of all containers."""
        self.log = log
        self._pace = pace
        self.readers: list[Reader] = []
        self.is_over = False
        self.loop = asyncio.get_running_loop()
        self._listeners: set[Listener] = set()
        self._was_heard = False
        self._version = 0
        self._news: asyncio.Future[None] = self.loop.create_future()
        self._window_ends = 0.0
        self._in_window = 0

    def read(self, descriptor: int, stream: bytes) -> None:
        """Takes over a descriptor that the program writes to."""
        reader = Reader(descriptor, lambda data: self._take(reader, stream, data))
        self.readers.append(reader)

    def say(self, stream: bytes, text: str) -> None:
        """Writes a line of our own."""
        self.log.write(stream, text.encode(errors="replace") + b"\n")
        self._notify()

    def finish(self) -> None:
        """The program has ended. Reads the rest of its output, and closes the log."""
        for reader in self.readers:
            reader.drain()
        self.is_over = True
        self.log.close()
        self._notify()
        for listener in list(self._listeners):
            listener.over()

    def add(self, listener: Listener) -> None:
        """The first listener also gets the earlier output: a client that creates a pod and attaches
        to it (kubectl run -it) often comes after the first lines."""
        if not self._was_heard:
            self._was_heard = True
            for stream, data in self.log.so_far(_MOST_BEFORE):
                listener.heard(stream, data)
        self._listeners.add(listener)

    def remove(self, listener: Listener) -> None:
        self._listeners.discard(listener)

    def follower(self) -> Callable[[], Awaitable[bool]]:
        """A function that waits for new output since its last call. False: the output has ended."""
        seen = self._version

        async def more() -> bool:
            nonlocal seen
            while self._version == seen and not self.is_over:
                # All followers share the future: one that is cancelled must not cancel it for the
                # others.
                await asyncio.shield(self._news)
            seen = self._version
            return not self.is_over

        return more

    def _take(self, reader: Reader, stream: bytes, data: bytes) -> None:
        began = self.loop.time()
        self.log.write(stream, data)
        for listener in list(self._listeners):
            listener.heard(stream, data)
        self._notify()
        self._slow_down(reader, len(data), began)

    def _slow_down(self, reader: Reader, size: int, began: float) -> None:
        """A full pipe makes the program wait. Without this, programs that print without end would
        fill the disk and keep the event loop busy."""
        now = self.loop.time()
        if now > self._window_ends:
            self._window_ends, self._in_window = now + _WINDOW_S, 0
        self._in_window += size
        rest_s = self._pace.spend(now, now - began)
        if self._in_window > _BYTES_PER_WINDOW:
            rest_s = max(rest_s, self._window_ends - now)
        if rest_s > 0:
            reader.hold()
            self.loop.call_later(rest_s, reader.go_on)

    def _notify(self) -> None:
        self._version += 1
        news, self._news = self._news, self.loop.create_future()
        news.set_result(None)
