"""Channel: bytes between a container and the browser, for as long as the visitor may have them.

`server.py` checks the session and the rights before it begins, and counts it. Whoever serves it
asks `may_go_on` every few seconds: a token may expire, and a right may be taken away.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import web

from gpupool.console.rights import Right
from gpupool.console.visit import Visit

LOOK_EVERY_S = 1.0

MayGoOn = Callable[[], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Channel:
    path: str  # below /clusters/{cluster}/: "pods/{namespace}/{name}/logs/text"
    rights: Callable[[Visit], tuple[Right, ...]]
    # Raises KubeError before it has answered, never later.
    serve: Callable[[Visit, web.Request, MayGoOn], Awaitable[web.StreamResponse]]
    method: str = "GET"


async def until_over(may_go_on: MayGoOn) -> None:
    # No event tells that a token has expired.
    while await may_go_on():  # noqa: ASYNC110
        await asyncio.sleep(LOOK_EVERY_S)
