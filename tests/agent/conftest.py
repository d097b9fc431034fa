import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gpupool.local.roles import role_objects
from kubeclient.client import Kube
from localkube.apiserver.inprocess import InProcess
from localkube.apiserver.request import User
from localkube.apiserver.security import certificates
from localkube.apiserver.security.identities import ADMIN
from localkube.apiserver.security.tokens import StaticTokens
from localkube.apiserver.server import build
from tests.agent.nodes import Node
from tests.conformance.api_server import NoNodes

AGENT = User("system:serviceaccount:kube-system:gpupool-agent", ("system:authenticated",))


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    """The agent has exactly the rights that it has in a cluster."""
    directory = tmp_path / "api"
    directory.mkdir()
    short = Path(tempfile.mkdtemp(prefix="gp-"))  # sockets are in it, whose paths may not be long
    server = build(directory, certificates.ensure(directory), StaticTokens(), NoNodes())
    try:
        await server.bootstrap(443, role_objects())
        handle = server.app.handle
        people = Kube(InProcess(handle, ADMIN, "somebody"))
        yield Node(people, Kube(InProcess(handle, AGENT, "gpupool")), short)
    finally:
        server.close()
        shutil.rmtree(short)
