"""Live pages: while a page is open, it is made again whenever something that it shows has changed.

The browser asks for the page's own address once more, as a stream of events. Each event is the new
HTML of the page, without its frame. `static/morph.js` changes what is different and leaves alone
the rest: the place on the page, the focus, and what is half typed.
"""

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import web

from gpupool.console.rights import SignedOut
from gpupool.console.sessions import Session
from gpupool.console.watches import Topic

MOST_STREAMS = 24  # of one session: tabs that are open
_SETTLE_S = 0.15  # changes often come in groups
_LEAST_PAUSE_S = 0.3
_COST_FACTOR = 5  # a page that took a second to make is made again after five
_LOOK_EVERY_S = 1.0  # whether the reader is still there
_QUIET_S = 15.0  # then a line that says nothing, so that both sides notice a broken connection

# Makes the page: its HTML, and what it has read.
Make = Callable[[], Awaitable[tuple[str, dict[Topic, int]]]]


def wants_stream(request: web.Request) -> bool:
    return "text/event-stream" in request.headers.get("Accept", "")


async def follow(
    request: web.Request, session: Session, make: Make, clock: Callable[[], float]
) -> web.StreamResponse:
    answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    try:
        await answer.prepare(request)
        await _send_changes(request, answer, session, make, clock)
    except SignedOut:
        await answer.write(event("signed-out", ""))
    except ConnectionError:
        pass  # the browser has closed the page
    return answer


async def _send_changes(
    request: web.Request,
    answer: web.StreamResponse,
    session: Session,
    make: Make,
    clock: Callable[[], float],
) -> None:
    last = ""
    while True:
        if session.ends <= clock():
            raise SignedOut
        began = clock()
        page, read = await make()
        if page != last:
            await answer.write(event("page", page))
            last = page
        await asyncio.sleep(max(_LEAST_PAUSE_S, _COST_FACTOR * (clock() - began)))
        while not await _has_changed(request, session, read):
            await answer.write(b":\n\n")
            if session.ends <= clock():
                raise SignedOut
            # Ages and rights change without an event, and so do readings of cards.
            break
        await asyncio.sleep(_SETTLE_S)


async def _has_changed(request: web.Request, session: Session, read: dict[Topic, int]) -> bool:
    """False: not for a while. Raises ConnectionError: the page was left. A write would notice that
    too, but so late that whoever goes through pages quickly has too many streams."""
    for _ in range(round(_QUIET_S / _LOOK_EVERY_S)):
        if request.transport is None or request.transport.is_closing():
            raise ConnectionResetError
        if await session.sight.watches.next_change(read, _LOOK_EVERY_S):
            return True
    return False


def event(name: str, data: str) -> bytes:
    lines = "".join(f"data: {line}\n" for line in data.split("\n"))
    return f"event: {name}\n{lines}\n".encode()
