"""Shows a page made of a cluster's objects: once, or again whenever one of them changes."""

import asyncio
import contextlib
import errno
import logging
import os
import signal
import stat
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from gpupool.cli.exit_codes import INTERRUPTED
from gpupool.cli.output.options import Output
from gpupool.cli.output.printer import Printer
from gpupool.cli.programs import ask_cluster
from kubeclient.mirror import Mirror
from kubeclient.resources import Resource

if TYPE_CHECKING:
    from gpupool.cli.output.pages import Page
    from kubeclient.client import Kube
    from kubeclient.objects import Obj

    PageOf = Callable[[Kube, Sequence[list[Obj]]], Awaitable[Page]]

_PAUSE_S = 0.2  # changes that come together are shown together


@dataclass(frozen=True, slots=True)
class Source:
    """Objects that a page is made of."""

    resource: Resource
    namespace: str = ""  # empty: all
    query: Mapping[str, str] = field(default_factory=dict)


def show_objects(
    output: Output,
    sources: Sequence[Source],
    page_of: "PageOf",
    every_s: float | None = None,
    /,
    **where: str,
) -> None:
    """`page_of` gets the client, and the objects of each source. `where`: as for `ask_cluster`.
    `every_s`: as for `redraw`."""

    async def once(kube: "Kube") -> "Page":
        listed = [await kube.list(s.resource, s.namespace, query=s.query) for s in sources]
        return await page_of(kube, [each.items for each in listed])

    async def watch(kube: "Kube") -> None:
        for each in sources:  # a mirror would ask again and again for what it may not see
            await kube.list(each.resource, each.namespace, query={**each.query, "limit": "1"})
        mirrors = [Mirror(kube, s.resource, namespace=s.namespace, query=s.query) for s in sources]

        async def page() -> "Page":
            return await page_of(kube, [list(mirror) for mirror in mirrors])

        await follow_mirrors(mirrors, output, page, every_s)

    if output.watch:
        with interruptible():
            ask_cluster(watch, doing="", **where)
    else:
        output.show(ask_cluster(once, **where))


async def follow_mirrors(
    mirrors: Sequence[Mirror],
    output: Output,
    page: Callable[[], Awaitable["Page"]],
    every_s: float | None = None,
) -> None:
    """Runs the mirrors, and shows the page once they are read and after every change. `every_s`:
    as for `redraw`."""
    changed = asyncio.Event()
    for mirror in mirrors:
        mirror.on_change(lambda _old, _new: changed.set())
    tasks = [asyncio.create_task(mirror.run()) for mirror in mirrors]
    try:
        for mirror in mirrors:
            await mirror.wait_synced()
        await redraw(output, changed, page, every_s)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def redraw(
    output: Output,
    changed: asyncio.Event,
    page: Callable[[], Awaitable["Page"]],
    every_s: float | None = None,
) -> None:
    """Shows the page whenever `changed` is set, until cancelled. `every_s`: at least as often, for
    what tells nobody that it changes."""
    printer = Printer(output)
    with _resizes(changed), _warnings(printer), _reader_of_output(changed) as has_gone:
        while not has_gone():
            changed.clear()
            printer.show(await page())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), every_s)
            await asyncio.sleep(_PAUSE_S)
    raise BrokenPipeError(errno.EPIPE, "nobody reads the output any more")


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C is how a watch ends, and no error."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo(err=True)  # the shell's prompt goes below ^C
        sys.exit(INTERRUPTED)


@contextlib.contextmanager
def _resizes(changed: asyncio.Event) -> Iterator[None]:
    """A terminal of another size gets the page anew."""
    loop, number = asyncio.get_running_loop(), getattr(signal, "SIGWINCH", None)
    if number is not None:
        loop.add_signal_handler(number, changed.set)
    try:
        yield
    finally:
        if number is not None:
            loop.remove_signal_handler(number)


@contextlib.contextmanager
def _reader_of_output(changed: asyncio.Event) -> Iterator[Callable[[], bool]]:
    """Whether the reader of a pipe has gone, as in `gpupool gpu list --watch | head -1`. Without
    this the watch would notice at its next line only, which may never come."""
    loop, gone = asyncio.get_running_loop(), asyncio.Event()
    output = _pipe_of_output()
    if output is None:
        yield gone.is_set
        return

    def has_gone() -> None:
        loop.remove_reader(output)  # it would be called again and again
        gone.set()
        changed.set()

    # Nothing can be read from this end: the event loop calls only for its error.
    loop.add_reader(output, has_gone)
    try:
        yield gone.is_set
    finally:
        loop.remove_reader(output)


def _pipe_of_output() -> int | None:
    try:
        number = sys.stdout.fileno()
        return number if stat.S_ISFIFO(os.fstat(number).st_mode) else None
    except (OSError, ValueError):  # closed, or no file at all
        return None


@contextlib.contextmanager
def _warnings(printer: Printer) -> Iterator[None]:
    """What mirrors log: that the API server does not answer, and that they try again."""
    handler = _Sayer(printer)
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


class _Sayer(logging.Handler):
    def __init__(self, printer: Printer) -> None:
        super().__init__(logging.WARNING)
        self._printer = printer

    def emit(self, record: logging.LogRecord) -> None:
        what, why = record.getMessage(), getattr(record, "error", "")
        what = what[:1].upper() + what[1:]
        self._printer.say(f"{what}: {why}" if why else what)
