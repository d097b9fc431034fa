"""Measures every turn that a handler of the API server takes on the event loop, in the whole suite.

A turn is what runs from one `await` that waits to the next. Measured is the processor time of the
thread, not the time of day, against the processor's speed at that time. The garbage collector's
time is left out: it belongs to whoever comes along.
"""

import gc
import sys
import threading
import time
from collections.abc import Coroutine, Generator
from typing import Any

from tests.processor_speed import BOUND_S, is_too_long


class Turns:
    def __init__(self) -> None:
        self.longest_s = 0.0
        self.count = 0
        self._long: list[tuple[float, str]] = []
        self._collecting_s: dict[int, float] = {}
        self._collected_s: dict[int, float] = {}
        self._is_installed = False

    def install(self) -> None:
        """Once there is an API server in this process."""
        module: Any = sys.modules.get("localkube.apiserver.app")
        if self._is_installed or module is None:
            return
        self._is_installed = True
        handle = module.App.handle

        async def measured(app: Any, request: Any) -> Any:
            return await _Measured(self, handle(app, request), request)

        module.App.handle = measured
        gc.callbacks.append(self._collects)

    def taken(self, request: Any, took_s: float) -> None:
        took_s -= self._collected_s.pop(threading.get_ident(), 0.0)
        self.count += 1
        self.longest_s = max(self.longest_s, took_s)
        if took_s > BOUND_S:
            what = f"{request.method} {request.path[:200]} ({len(request.body)} bytes)"
            self._long.append((took_s, f"{what} held the event loop for {took_s * 1000:.0f} ms"))

    def too_long(self) -> list[str]:
        """Those since the last call. Judged only now: that takes time, and a turn may be a part of
        what another watchdog measures."""
        found, self._long = self._long, []
        return [words for took_s, words in found if is_too_long(took_s)]

    def begins(self) -> None:
        self._collected_s.pop(threading.get_ident(), None)

    def _collects(self, phase: str, _: dict[str, int]) -> None:
        thread, now_s = threading.get_ident(), time.thread_time()
        if phase == "start":
            self._collecting_s[thread] = now_s
        else:
            took_s = now_s - self._collecting_s.get(thread, now_s)
            self._collected_s[thread] = self._collected_s.get(thread, 0.0) + took_s


class _Measured:
    """Awaits a coroutine, and measures each of its turns."""

    def __init__(self, turns: Turns, work: Coroutine[Any, Any, Any], request: Any) -> None:
        self._turns = turns
        self._work = work
        self._request = request

    def __await__(self) -> Generator[Any, Any, Any]:
        send: Any = self._work.send
        value: Any = None
        while True:
            self._turns.begins()
            began_s = time.thread_time()
            try:
                waited_for = send(value)
            except StopIteration as end:
                return end.value
            finally:
                self._turns.taken(self._request, time.thread_time() - began_s)
            try:
                value = yield waited_for
                send = self._work.send
            except GeneratorExit:
                self._work.close()
                raise
            except BaseException as error:  # noqa: BLE001 - it belongs to the coroutine
                value, send = error, self._work.throw


TURNS = Turns()
