"""RecentUse: what all cards have used in the last minutes, from the history, in one question.

Asking thousands of agents takes a connection to each. The history has asked them already.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from gpupool.core.readings import CardReading
from gpupool.history.database import NoHistory
from gpupool.history.pages import History
from gpupool.history.series import Kind

SPAN_S = 180  # a collector writes once a minute
_WITHIN_S = 0.5  # a page waits so long; then it is made again when the answer is there
_ANSWER_LIMIT_S = 30.0
_GOOD_FOR_S = 30.0


@dataclass(slots=True)
class RecentUse:
    history: Callable[[], History] | None  # may raise NoHistory; None: there is none
    clock: Callable[[], float]
    changed: Callable[[], None]  # called when an answer has come late
    _known: dict[str, CardReading] = field(default_factory=dict)
    _until: float = float("-inf")
    _asking: asyncio.Task[None] | None = None

    async def cards(self) -> dict[str, CardReading]:
        """By uuid; without those of which nobody told. Empty: there is no history (yet)."""
        if self.history is not None and self._until < self.clock():
            self._asking = self._asking or asyncio.create_task(self._ask(), name="recent-use")
            await asyncio.wait((self._asking,), timeout=_WITHIN_S)
        return self._known

    async def _ask(self) -> None:
        assert self.history is not None
        began = self.clock()
        try:
            async with asyncio.timeout(_ANSWER_LIMIT_S):
                sums = await self.history().sums(Kind.CARD, time.time() - SPAN_S)
            self._known = {
                series.name: CardReading(series.name, sample.memory_used * 1000 // sample.told)
                for series, sample in sums.of
                if sample.told
            }
        except (NoHistory, TimeoutError):
            self._known = {}
        finally:
            self._until, self._asking = self.clock() + _GOOD_FOR_S, None
        if self.clock() - began > _WITHIN_S:
            self.changed()

    async def end(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)
