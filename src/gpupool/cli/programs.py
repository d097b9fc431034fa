"""Runs our programs as processes: finds the cluster, runs until a signal, writes the log."""

import asyncio
import contextlib
import importlib.util
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import click

from gpupool.cli.progress import progress
from kubeclient.access import Access, NoAccess
from kubeclient.client import Kube
from kubeclient.redaction import redact

Answer = TypeVar("Answer")
LoopFactory = Callable[[], asyncio.AbstractEventLoop]
# Attributes that every log record has. Whatever else a record has was given as `extra`.
_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def event_loop() -> asyncio.AbstractEventLoop:
    import uvloop

    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def run_program(
    work: Callable[[Kube], Coroutine[Any, Any, None]],
    name: str,
    loop: LoopFactory = event_loop,
    /,
    **where: str,
) -> None:
    """Runs until `work` ends, or SIGTERM or SIGINT comes. `name` is the user agent."""

    async def with_kube(kube: Kube, _access: Access) -> None:
        await work(kube)

    run_with_access(with_kube, name, loop, **where)


def run_with_access(
    work: Callable[[Kube, Access], Coroutine[Any, Any, None]],
    name: str,
    loop: LoopFactory = event_loop,
    /,
    **where: str,
) -> None:
    """As `run_program`, for work that makes further clients itself."""
    url = ""

    async def noted(kube: Kube, access: Access) -> None:
        nonlocal url
        url = access.url
        await work(kube, access)

    async def main() -> None:
        task = asyncio.current_task()
        assert task is not None
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        await _with_kube(noted, name, where)

    try:
        with asyncio.Runner(loop_factory=loop) as runner:
            runner.run(main())
    except asyncio.CancelledError:
        return
    except Exception as error:
        # Imported here: agents serve HTTP only when they are asked, and this would load the server.
        from gpupool.health import CannotListen
        from kubeclient.errors import KubeError

        first = _first(error, KubeError, CannotListen)
        if first is None:
            raise
        raise click.ClickException(_words(first, url)) from error


def _first(error: BaseException, *kinds: type[Exception]) -> Exception | None:
    """The first error of these kinds, which may be inside of groups; None: there is none."""
    if isinstance(error, BaseExceptionGroup):
        found = (_first(each, *kinds) for each in error.exceptions)
        return next((each for each in found if each is not None), None)
    return error if isinstance(error, kinds) else None


def ask_cluster(
    work: Callable[[Kube], Awaitable[Answer]], doing: str = "Asking the API server", **where: str
) -> Answer:
    """Runs `work` with a client. Errors of the API server become messages for the user. `doing`:
    what to show if it takes long; empty: the caller shows it."""
    with progress(doing) if doing else contextlib.nullcontext():
        return ask_within(None, work, where)


def ask_with_access(
    work: Callable[[Kube, str], Awaitable[Answer]], doing: str = "", **where: str
) -> Answer:
    """As `ask_cluster`, for work that also needs the URL of the API server."""
    with progress(doing) if doing else contextlib.nullcontext():
        return _asked(None, work, where)


def ask_within(
    limit_s: float | None, work: Callable[[Kube], Awaitable[Answer]], where: dict[str, str]
) -> Answer:
    """As `ask_cluster`, and shows nothing. Raises TimeoutError."""
    return _asked(limit_s, lambda kube, _url: work(kube), where)


def _asked(
    limit_s: float | None, work: Callable[[Kube, str], Awaitable[Answer]], where: dict[str, str]
) -> Answer:
    from kubeclient.errors import KubeError

    url = ""

    async def with_kube(kube: Kube, access: Access) -> Answer:
        nonlocal url
        url = access.url
        return await work(kube, url)

    async def within_limit() -> Answer:
        async with asyncio.timeout(limit_s):
            return await _with_kube(with_kube, "gpupool", where)

    try:
        return asyncio.run(within_limit())
    except KubeError as error:
        raise click.ClickException(_words(error, url)) from error


async def _with_kube(
    work: Callable[[Kube, Access], Awaitable[Answer]], name: str, where: dict[str, str]
) -> Answer:
    from kubeclient.https import connected

    access = await _access(where)
    async with connected(access, name) as kube:
        return await work(kube, access)


async def _access(where: dict[str, str]) -> Access:
    from kubeclient.credentials import find_access, names_cluster

    hint = ""
    if not where.get("kubeconfig") and not names_cluster(os.environ):
        where = {**where, "kubeconfig": _only_kubeconfig()}
        hint = " Or start a local cluster: gpupool up."
    try:
        return await find_access(os.environ, **where)  # type: ignore[arg-type]  # `where` has only texts
    except NoAccess as error:
        files = where.get("kubeconfig") or os.environ.get("KUBECONFIG", "")
        words = _why_no_kubeconfig(files) or f"{error}{hint}"
        raise click.ClickException(words) from error


def has_local_clusters() -> bool:
    """`pip install gpupool` has none."""
    return importlib.util.find_spec("localkube") is not None


def default_kubeconfig() -> str:
    """That of a local cluster when nothing names a cluster; empty: kubectl's own rules hold."""
    from kubeclient.credentials import names_cluster

    return "" if names_cluster(os.environ) else _only_kubeconfig()


def _only_kubeconfig() -> str:
    """That of the local cluster that is meant when nothing names one; empty: there is none."""
    if not has_local_clusters():
        return ""
    from gpupool.cli.which_cluster import only_kubeconfig

    return only_kubeconfig()


def _why_no_kubeconfig(files: str) -> str:
    if not has_local_clusters():
        return ""
    from gpupool.cli.which_cluster import why_no_kubeconfig

    return why_no_kubeconfig(files)


def _words(error: Exception, url: str) -> str:
    from gpupool.cli.refusals import words_of
    from kubeclient.errors import KubeError, NoAnswer

    if isinstance(error, NoAnswer) and has_local_clusters():
        from gpupool.cli.which_cluster import why_silent

        if words := why_silent(url):
            return words
    return words_of(error, url) if isinstance(error, KubeError) else str(error)


def log_to_stderr(output: logging.Handler | None = None) -> None:
    """Lines of time, level, event and its fields as key=value, without credentials. `output`: a
    handler of the caller that writes there."""
    output = output or logging.StreamHandler(sys.stderr)
    output.setFormatter(_FieldsFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[output])


class _FieldsFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        fields = " ".join(f"{k}={v}" for k, v in vars(record).items() if k not in _PLAIN)
        # Fields go on the first line, before a stack trace. Redacted last, so that fields and trace
        # are covered.
        head, newline, trace = line.partition("\n")
        return redact(f"{head} {fields}{newline}{trace}" if fields else line)
