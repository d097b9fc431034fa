"""A real API server in this process, used only by the test."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from kubeclient.client import Kube
from localkube.apiserver.security import certificates
from localkube.apiserver.security.identities import ADMIN
from localkube.apiserver.security.tokens import StaticTokens
from localkube.apiserver.server import build
from tests.conformance.api_server import NoNodes


@contextlib.asynccontextmanager
async def api(directory: Path) -> AsyncIterator[Kube]:
    server = build(directory, certificates.ensure(directory), StaticTokens(), NoNodes())
    try:
        await server.bootstrap(443)
        yield server.client(ADMIN)
    finally:
        server.close()
