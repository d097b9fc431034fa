"""The server process: runs one cluster until it is stopped.

It is stopped by SIGTERM, SIGINT or SIGHUP, or when the pipe that --attached-to names is closed. A
second SIGINT ends it at once.
"""

import asyncio
import contextlib
import errno
import logging
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import uvloop

from gpupool.local.cluster_setup import (
    REAL_GPUS,
    SANDBOX_AUTO,
    SANDBOX_REQUIRED,
    SIMULATED_GPUS,
    Prepared,
    fingerprint,
)
from gpupool.local.config.settings import LocalSettings
from gpupool.local.home import CannotUse, ClusterDirectory
from gpupool.local.ports import no_port
from gpupool.local.reports import Failed, Listener, Ready, Step
from kubeclient.errors import Refused
from localkube.apiserver.security.certificates import CertificateError
from localkube.apiserver.server import raise_open_files_limit, tune_garbage_collector
from localkube.apiserver.store.disk import StoreDamaged
from localkube.data_directory import AlreadyRunning, DataDirectoryError, Lock, restrict_umask
from localkube.supervision import first_cause

log = logging.getLogger(__name__)


class RunningCluster(Protocol):
    """What `run_cluster` passes to `ready`."""

    @property
    def port(self) -> int: ...


class RunCluster(Protocol):
    async def __call__(
        self,
        settings: LocalSettings,
        *,
        ready: Callable[[RunningCluster], None],
        stop: asyncio.Event,
    ) -> None: ...


def serve(
    prepared: Prepared,
    *,
    run: RunCluster,
    tell: Listener,
    attached_to: int | None = None,
    lock: Lock | None = None,
) -> int:
    """Returns the exit code: 0 after a clean stop, 1 when it could not start or failed.

    The lock of the data directory (`lock`, if the caller has it already) is held until everything
    has stopped, so that a second server never opens the same database.
    """
    raise_open_files_limit()
    try:
        # In this order, because the last one is left first: the loop is closed before the lock is
        # released.
        with (
            lock or Lock(prepared.cluster.path),
            asyncio.Runner(loop_factory=_event_loop) as runner,
        ):
            runner.run(_run(prepared, run, tell, attached_to))
    except Exception as error:
        cause = first_cause(error)
        words = _words(cause, prepared.settings)
        if words is None:
            log.exception("server stopped")
        else:
            log.error("server stopped", extra={"error": words})
        tell(Failed(words or f"{type(cause).__name__}: {cause}"))
        return 1
    return 0


def serve_as_process(
    prepared: Prepared, tell: Listener, attached_to: int | None, lock: Lock
) -> int:
    """As `serve`, for a process that does nothing else: sets its umask to 077."""
    from gpupool.local.cluster import run_cluster  # slow to load: the caller has reported this step

    restrict_umask()
    return serve(prepared, run=run_cluster, tell=tell, attached_to=attached_to, lock=lock)


def _event_loop() -> asyncio.AbstractEventLoop:
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


async def _run(
    prepared: Prepared, run: RunCluster, tell: Listener, attached_to: int | None
) -> None:
    cluster, settings = prepared.cluster, prepared.settings
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, _stop_once, loop, stop, cluster)
    if attached_to is not None:
        loop.add_reader(attached_to, _stop_at_end, loop, attached_to, stop)

    def ready(running: RunningCluster) -> None:
        text = cluster.cluster_file.read_text(encoding="utf-8")
        # Before the report: other commands read the port from this file as soon as the server is
        # ready.
        cluster.write_state(
            {
                "stopping" if stop.is_set() else "pid": os.getpid(),
                "port": running.port,
                "applied": fingerprint(text),
                "gpus": REAL_GPUS if settings.real_gpus else SIMULATED_GPUS,
                "sandbox": SANDBOX_REQUIRED if settings.wall_required else SANDBOX_AUTO,
            }
        )
        tune_garbage_collector()
        log.info("cluster is ready", extra={"cluster": settings.name, "port": running.port})
        tell(Ready(running.port))

    tell(Step("starting the API server"))
    await run(settings, ready=ready, stop=stop)
    log.info("cluster has stopped", extra={"cluster": settings.name})


def _stop_once(
    loop: asyncio.AbstractEventLoop, stop: asyncio.Event, cluster: ClusterDirectory
) -> None:
    stop.set()
    # From here on, nobody may take it for a cluster that can be used: `up` waits for its end.
    with contextlib.suppress(OSError, CannotUse):  # a full disk must not keep us from stopping
        state = cluster.state()
        if state.pop("pid", None) == os.getpid():
            cluster.write_state(state | {"stopping": os.getpid()})
    loop.remove_signal_handler(signal.SIGINT)
    # Not through the loop, which may be blocked. 130 is what shells report after Ctrl-C.
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))


def _stop_at_end(loop: asyncio.AbstractEventLoop, descriptor: int, stop: asyncio.Event) -> None:
    if not os.read(descriptor, 4096):
        loop.remove_reader(descriptor)
        stop.set()


def _words(error: BaseException, settings: LocalSettings) -> str | None:
    """A message that says what to do; None for unexpected errors, which are logged in full."""
    match error:
        case OSError(errno=errno.EADDRINUSE):
            return no_port(settings.port, "it is in use", "Choose another with --port.").message
        case OSError(errno=errno.ENOSPC):
            return f"No space is left for {settings.data_dir}: free some, and start again."
        case AlreadyRunning():
            return f"{error} `gpupool down` stops it."
        case StoreDamaged():
            return f"{error}. `gpupool reset` deletes the cluster."
        case DataDirectoryError() | CertificateError() | Refused():
            return str(error)  # these messages say what to do
        case OSError(filename=str(name)) if Path(name).is_relative_to(settings.data_dir):
            return f"{name}: {error.strerror}. Put back what was there, or remove it."
        case _:
            return None
