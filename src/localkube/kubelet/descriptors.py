"""Reading and writing pipes and terminals on the event loop."""

import asyncio
import contextlib
import fcntl
import os
import struct
import termios
from collections.abc import Callable

_CHUNK = 65_536
# What is read at once of a program's output: 16,384 empty lines take half a millisecond to log,
# and 65,536 eight.
_PRINTED = 16_384
_MOST_IN_PIPE = 1024 * 1024  # the largest pipe that a program may make (fs.pipe-max-size)


class Reader:
    """Passes on what comes out of a descriptor, which it owns. `hold` pauses it."""

    def __init__(self, descriptor: int, data: Callable[[bytes], None]) -> None:
        self._descriptor = descriptor
        self._data = data
        self._held = 0
        self._closed = False
        os.set_blocking(descriptor, False)
        asyncio.get_running_loop().add_reader(descriptor, self._ready)

    def hold(self) -> None:
        """Stops reading, so that the writer has to wait, until `go_on` is called as often."""
        self._held += 1
        if self._held == 1 and not self._closed:
            asyncio.get_running_loop().remove_reader(self._descriptor)

    def go_on(self) -> None:
        self._held -= 1
        if self._held == 0 and not self._closed:
            asyncio.get_running_loop().add_reader(self._descriptor, self._ready)

    def drain(self) -> None:
        """Reads what is left in the pipe, then closes it: the program has exited."""
        # Until nothing is left, not until the end: a process in the background may keep the pipe
        # open. And no more than the program can have left there: that process may write faster
        # than we read, and we are on the event loop.
        taken = 0
        while not self._closed and taken < _MOST_IN_PIPE and (size := self._ready()):
            taken += size
        self.close()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        # Before the close, after which the number may belong to another file at once.
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)

    def _ready(self) -> int:
        """How much it has read."""
        try:
            data = os.read(self._descriptor, _PRINTED)
        except BlockingIOError:
            return 0
        except OSError:  # a terminal without a program at its other end
            data = b""
        if not data:
            self.close()
            return 0
        self._data(data)
        return len(data)


class Writer:
    """Writes to a descriptor, which it owns. Drops the data if the reader is gone."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._closed = False
        # Two writes that both wait for room would mix their bytes.
        self._turn = asyncio.Lock()
        os.set_blocking(descriptor, False)

    async def write(self, data: bytes) -> None:
        """Returns when everything is written."""
        async with self._turn:
            view = memoryview(data)
            while view and not self._closed:
                try:
                    view = view[os.write(self._descriptor, view) :]
                except BlockingIOError:
                    await self._room()
                except OSError:
                    self.close()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            asyncio.get_running_loop().remove_writer(self._descriptor)
            os.close(self._descriptor)

    async def _room(self) -> None:
        loop = asyncio.get_running_loop()
        room: asyncio.Future[None] = loop.create_future()
        loop.add_writer(self._descriptor, _resolve, room)
        try:
            async with asyncio.timeout(
                1.0
            ):  # then check again: the descriptor may have been closed
                await room
        except TimeoutError:
            pass
        finally:
            if not self._closed:
                loop.remove_writer(self._descriptor)


class Source:
    """Reads from a descriptor, which it owns, only on demand, so that the writer has to wait."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._closed = False
        self._ending = False
        self._wake = asyncio.Event()
        os.set_blocking(descriptor, False)

    async def read(self) -> bytes:
        """The next bytes; empty at the end."""
        loop = asyncio.get_running_loop()
        while not self._closed:
            try:
                data = os.read(self._descriptor, _CHUNK)
            except BlockingIOError:
                if self._ending:
                    break
            except OSError:  # a terminal without a program at its other end
                break
            else:
                return data
            self._wake.clear()
            loop.add_reader(self._descriptor, self._wake.set)
            try:
                await self._wake.wait()
            finally:
                if not self._closed:
                    loop.remove_reader(self._descriptor)
        return b""

    def end(self) -> None:
        """The program has exited: `read` returns what is left, and then the end."""
        self._ending = True
        self._wake.set()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            asyncio.get_running_loop().remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._wake.set()


def _resolve(room: asyncio.Future[None]) -> None:
    if not room.done():
        room.set_result(None)


def resize(terminal: int, width: int, height: int) -> None:
    size = struct.pack("HHHH", min(height, 65_535), min(width, 65_535), 0, 0)
    with contextlib.suppress(OSError):
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)
