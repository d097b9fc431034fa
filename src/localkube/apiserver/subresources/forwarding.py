"""One forwarded connection: bytes both ways between a client and a port, whatever carries them."""

import asyncio
import contextlib
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

from localkube.node_streams import Connection, NodeRefusal, NodeStreams


class Ends(Protocol):
    """The client's side. `write` raises ConnectionResetError when the client is gone."""

    async def read(self) -> bytes:
        """Empty at the end."""

    async def write(self, data: bytes) -> None: ...


@dataclass(frozen=True, slots=True)
class Target:
    """Whose ports are forwarded."""

    pod_name: str
    pod_uid: str
    node: NodeStreams


async def forward(target: Target, port: int, client: Ends) -> str | None:
    """Until the pod has sent all, or the client is gone. Gives the kubelet's words for a fault."""
    try:
        connection = await target.node.dial(target.pod_uid, port)
    except NodeRefusal as refusal:
        return (
            f"error forwarding port {port} to pod {target.pod_name}, "
            f"uid {target.pod_uid}: {refusal.message}"
        )
    try:
        upwards = asyncio.create_task(_to_pod(client, connection), name="forward-to-pod")
        try:
            with contextlib.suppress(ConnectionResetError):
                while data := await connection.read():
                    await client.write(data)
        finally:
            upwards.cancel()
            await asyncio.gather(upwards, return_exceptions=True)
    finally:
        await connection.close()
    return None


async def _to_pod(client: Ends, connection: Connection) -> None:
    # A pod that no longer reads may still have something to say.
    with contextlib.suppress(OSError):
        while data := await client.read():
            await connection.write(data)
        await connection.close_write()


async def until_first(*work: Coroutine[Any, Any, None]) -> None:
    """Runs all until one ends; then the others are cancelled. Raises what that one raised."""
    tasks = [asyncio.create_task(item, name="until-first") for item in work]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
