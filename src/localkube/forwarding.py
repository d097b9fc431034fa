"""A client's connection led to a port of a pod, in both directions."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from localkube.node_streams import Connection

_CHUNK = 64 * 1024


async def forward(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    connect: Callable[[], Awaitable[Connection | None]],
) -> None:
    """Until both sides have ended, or one has gone; not at all if `connect` gives None."""
    connection = None
    try:
        connection = await connect()
        if connection is None:
            return
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_upload(reader, connection))
            tasks.create_task(_download(connection, writer))
    except* OSError:
        pass  # one side closed the connection
    finally:
        if connection is not None:
            with contextlib.suppress(OSError):
                await connection.close()
        writer.close()


async def _upload(reader: asyncio.StreamReader, connection: Connection) -> None:
    while data := await reader.read(_CHUNK):
        await connection.write(data)
    # Only this direction: the client may have sent all of its request and wait for the answer.
    await connection.close_write()


async def _download(connection: Connection, writer: asyncio.StreamWriter) -> None:
    while data := await connection.read():
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
