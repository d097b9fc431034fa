"""Sees that no callback of an event loop keeps the others waiting, and says which one did.

Measured is the processor time of the loop's thread, not the time of day, against the processor's
speed at that time. The garbage collector's time is left out: it belongs to whoever comes along.
"""

import asyncio
import contextlib
import gc
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.processor_speed import BOUND_S, is_too_long

_LOOK_EVERY_S = 0.01


@dataclass
class Watchdog:
    stalls: list[str] = field(default_factory=list)
    longest_s: float = 0.0
    callbacks: int = 0
    _thread: int = 0
    _began_s: float | None = None  # the processor time at which the running callback began
    _began_at: float = 0.0  # and the time of day
    _collecting_s: float = 0.0
    _collected_s: float = 0.0  # in the running callback
    _seen: str = ""  # where the running callback was when it had run for long

    @contextlib.contextmanager
    def watching(self) -> Iterator["Watchdog"]:
        """Within, in the thread of the loop."""
        self._thread = threading.get_ident()
        run = asyncio.Handle._run

        def measured(handle: asyncio.Handle) -> None:
            if threading.get_ident() != self._thread:
                return run(handle)
            self._seen, self._collected_s = "", 0.0
            self._began_at, self._began_s = time.monotonic(), time.thread_time()
            try:
                run(handle)
            finally:
                self._ended(handle, time.thread_time())

        ended = threading.Event()
        looking = threading.Thread(target=self._look, args=(ended,), daemon=True)
        setattr(asyncio.Handle, "_run", measured)  # noqa: B010 - a method, to mypy
        gc.callbacks.append(self._collects)
        looking.start()
        try:
            yield self
        finally:
            setattr(asyncio.Handle, "_run", run)  # noqa: B010
            gc.callbacks.remove(self._collects)
            ended.set()
            looking.join()

    def _ended(self, handle: asyncio.Handle, now_s: float) -> None:
        began_s, self._began_s = self._began_s, None
        if began_s is None:
            return
        took_s = now_s - began_s - self._collected_s
        self.callbacks += 1
        self.longest_s = max(self.longest_s, took_s)
        if is_too_long(took_s):
            self.stalls.append(f"{took_s * 1000:.0f} ms: {_name(handle)}\n{self._seen}")

    def _collects(self, phase: str, _: dict[str, int]) -> None:
        if threading.get_ident() == self._thread:
            if phase == "start":
                self._collecting_s = time.thread_time()
            else:
                self._collected_s += time.thread_time() - self._collecting_s

    def _look(self, ended: threading.Event) -> None:
        while not ended.wait(_LOOK_EVERY_S):
            if self._began_s is not None and time.monotonic() - self._began_at > BOUND_S / 2:
                frame = sys._current_frames().get(self._thread)
                if frame is not None and not self._seen:
                    self._seen = "".join(traceback.format_stack(frame)[-12:])


def _name(handle: asyncio.Handle) -> str:
    callback: Any = handle._callback  # type: ignore[attr-defined]
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        return f"task {owner.get_name()}: {owner.get_coro()!r}"
    return repr(callback)
