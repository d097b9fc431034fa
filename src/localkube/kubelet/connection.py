"""A TCP connection to a port of a pod."""

import asyncio
import contextlib

_CHUNK = 65_536


class TcpConnection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self) -> bytes:
        try:
            return await self._reader.read(_CHUNK)
        except OSError:
            return b""

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def close_write(self) -> None:
        with contextlib.suppress(OSError):
            self._writer.write_eof()

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


async def connected(host: str, port: int) -> TcpConnection:
    """Raises OSError."""
    return TcpConnection(*await asyncio.open_connection(host, port))
