"""How long a loop over much goes on before it lets others go first."""

import asyncio
import time

_TURN_S = 0.01


class Turns:
    """For a loop over much: `await turns.next()` lets others go first once its turn is over."""

    __slots__ = ("_end_s",)

    def __init__(self) -> None:
        self._end_s = time.monotonic() + _TURN_S

    async def next(self) -> None:
        if time.monotonic() > self._end_s:
            await asyncio.sleep(0)
            self._end_s = time.monotonic() + _TURN_S
