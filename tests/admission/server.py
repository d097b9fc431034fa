"""A real API server inside the test process, and the webhook."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from gpupool.admission.review import Rules
from gpupool.admission.run import AdmissionSettings, run_admission
from gpupool.local.roles import role_objects
from kubeclient.client import Kube
from localkube.apiserver.request import User
from localkube.apiserver.security import certificates
from localkube.apiserver.security.identities import ADMIN, SCHEDULER
from localkube.apiserver.security.tokens import StaticTokens
from localkube.apiserver.server import ApiServer, build
from tests.conformance.api_server import NoNodes


@contextlib.asynccontextmanager
async def whole_server(directory: Path) -> AsyncIterator[ApiServer]:
    server = build(directory, certificates.ensure(directory), StaticTokens(), NoNodes())
    try:
        await server.bootstrap(6443, role_objects())
        yield server
    finally:
        await server.end()


@contextlib.asynccontextmanager
async def api_server(directory: Path, user: User = ADMIN) -> AsyncIterator[Kube]:
    async with whole_server(directory) as server:
        yield server.client(user)


@contextlib.asynccontextmanager
async def webhook(server: ApiServer, kube: Kube | None = None, **more: Any) -> AsyncIterator[int]:
    """Runs the webhook; yields its port. `more`: of its settings."""
    settings = AdmissionSettings(Rules(schedulers=frozenset({SCHEDULER.name})), **more)
    registered: asyncio.Queue[int] = asyncio.Queue()
    running = asyncio.create_task(
        run_admission(kube or server.client(ADMIN), settings, ready=registered.put_nowait)
    )
    try:
        yield await registered.get()
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
