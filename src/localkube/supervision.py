"""Supervision: runs each program of a cluster on its own, and starts it again when it fails.

Whatever happens to one program, the API server and all other programs go on. A program that fails,
or that ends although nobody asked it to, is made anew after a pause: one second, and twice as long
after each failure in a row, up to a minute. A program that has run for a minute begins with one
second again.

`Health` (health.py) knows at any time which programs fail, and why.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

from kubeclient.mirror_faults import Broke, text_of
from kubeclient.objects import Obj
from localkube.health import Health, named

log = logging.getLogger(__name__)

Work = Coroutine[Any, Any, None]
# Makes the program: called for each start, because a coroutine can run only once.
Program = Callable[[], Work]


class EndedByItself(Exception):
    """A program stopped without an error, although it is to run as long as the cluster."""


@dataclass(frozen=True, slots=True)
class Pauses:
    first_s: float = 1.0
    longest_s: float = 60.0
    works_after_s: float = 10.0  # a program that runs for so long counts as working
    forgotten_after_s: float = 60.0  # and after so long its failures are forgotten

    def after(self, failures: int) -> float:
        """How long to wait after so many failures in a row."""
        return min(self.longest_s, self.first_s * float(2 ** min(failures - 1, 20)))


def first_cause(error: BaseException) -> BaseException:
    """The error that started it, out of the groups that task groups wrap it in."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


class Reporter(Protocol):
    """Is told of each failure. Must not fail itself."""

    def program_failed(self, program: str, words: str) -> None: ...

    def object_not_handled(self, program: str, obj: Obj, words: str) -> None: ...


class Supervisor:
    def __init__(
        self, health: Health, reporter: Reporter | None = None, pauses: Pauses | None = None
    ) -> None:
        self.health = health
        self._reporter = reporter
        self._pauses = pauses or Pauses()

    def objects_of(self, name: str) -> Broke:
        """For mirrors and controllers: who is told of objects that this program fails with."""

        def broke(obj: Obj, error: Exception | None) -> None:
            if error is None:
                self.health.can_handle(name, named(obj))
                return
            words = text_of(error)
            self.health.cannot_handle(name, named(obj), words)
            if self._reporter is not None:
                self._reporter.object_not_handled(name, obj, words)

        return broke

    async def keep(self, name: str, program: Program) -> NoReturn:
        """Runs the program until cancelled; returns in no other way."""
        loop = asyncio.get_running_loop()
        failures, said = 0, ""
        self.health.begins(name)
        try:
            while True:
                began_s = loop.time()
                works = loop.call_later(self._pauses.works_after_s, self.health.works, name)
                try:
                    error = await _end_of(name, program)
                finally:
                    works.cancel()
                if loop.time() - began_s >= self._pauses.forgotten_after_s:
                    failures = 0
                failures += 1
                pause_s = self._pauses.after(failures)
                words = text_of(first_cause(error))
                self._failed(name, error, words, pause_s, again=words == said)
                said = words
                await asyncio.sleep(pause_s)
        finally:
            self.health.ends(name)

    def _failed(
        self, name: str, error: BaseException, words: str, pause_s: float, *, again: bool
    ) -> None:
        self.health.fails(name, words)
        # The traceback once: a program may fail in the same way for days.
        log.error(
            "program failed",
            extra={"program": name, "error": words, "retry_s": pause_s},
            exc_info=None if again else error,
        )
        if self._reporter is not None:
            self._reporter.program_failed(name, words)


async def _end_of(name: str, program: Program) -> BaseException:
    """Runs the program until it ends, and returns why. When the caller is cancelled, so is the
    program, and CancelledError is raised once the program has ended.

    The program is a task of its own. So a CancelledError that it raises by itself can be told from
    the one that ends the cluster."""
    running = asyncio.create_task(_contained(program), name=name)
    stopped = False
    while not running.done():
        try:
            await asyncio.wait((running,))
        except asyncio.CancelledError:
            stopped = True
            running.cancel()
    if running.cancelled():
        error: BaseException | None = EndedByItself("it was cancelled by one of its own parts")
    else:
        error = running.exception()
    if stopped:
        if error is not None and not running.cancelled():
            words = text_of(first_cause(error))
            log.warning("program failed to stop", extra={"program": name, "error": words})
        raise asyncio.CancelledError
    return error or EndedByItself("it returned")


async def _contained(program: Program) -> None:
    try:
        await program()
    except SystemExit as error:  # asyncio would pass it on, and end the process
        raise EndedByItself(f"it asked to exit with {error.code!r}") from error
