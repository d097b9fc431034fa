"""A client at the streams of a container's own program (kubectl attach)."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from localkube.kubelet.container_run import ContainerRun
from localkube.kubelet.descriptors import resize
from localkube.kubelet.log_file import STDERR, STDOUT
from localkube.node_streams import AttachOptions

_MOST_WAITING = 1024 * 1024


class AttachStream:
    def __init__(self, run: ContainerRun, options: AttachOptions) -> None:
        self._run = run
        self._options = options
        self._waiting: dict[bytes, deque[bytes]] = {STDOUT: deque(), STDERR: deque()}
        self._wanted = {STDOUT: options.stdout, STDERR: options.stderr and not options.tty}
        self._size = 0
        self._holding = False
        self._over = False
        self._news = {STDOUT: asyncio.Event(), STDERR: asyncio.Event()}
        run.output.add(self)

    def heard(self, stream: bytes, data: bytes) -> None:
        if not self._wanted[stream] or self._over:
            return
        self._waiting[stream].append(data)
        self._size += len(data)
        self._news[stream].set()
        if self._size > _MOST_WAITING and not self._holding:
            self._holding = True
            for reader in self._run.output.readers:
                reader.hold()

    def over(self) -> None:
        self._over = True
        for event in self._news.values():
            event.set()

    def stdout(self) -> AsyncIterator[bytes]:
        return self._stream(STDOUT)

    def stderr(self) -> AsyncIterator[bytes]:
        return self._stream(STDERR)

    async def write_stdin(self, data: bytes) -> None:
        if self._options.stdin and self._run.stdin is not None:
            await self._run.stdin.write(data)

    async def close_stdin(self) -> None:
        stdin = self._run.stdin
        if self._options.stdin and stdin is not None and self._run.spec.get("stdinOnce"):
            if self._run.terminal is not None:
                await stdin.write(b"\x04")
            else:
                stdin.close()

    async def resize(self, width: int, height: int) -> None:
        if self._run.terminal is not None:
            resize(self._run.terminal, width, height)

    async def wait(self) -> int:
        return await asyncio.shield(self._run.exited)

    async def hang_up(self) -> None:
        self._run.output.remove(self)
        self.over()
        self._let_go()

    async def _stream(self, stream: bytes) -> AsyncIterator[bytes]:
        waiting, news = self._waiting[stream], self._news[stream]
        while self._wanted[stream]:
            while waiting:
                data = waiting.popleft()
                self._size -= len(data)
                if self._size < _MOST_WAITING // 2:
                    self._let_go()
                yield data
            if self._over:
                return
            news.clear()
            await news.wait()

    def _let_go(self) -> None:
        if self._holding:
            self._holding = False
            for reader in self._run.output.readers:
                reader.go_on()
