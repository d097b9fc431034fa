"""run_console: listens, serves the pages, and closes all sessions at the end."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace

from gpupool.console.machines import MachineType
from gpupool.console.model import NewModel
from gpupool.console.platform import Platform
from gpupool.console.server import Console
from gpupool.console.sight import HistoryOf
from gpupool.console.sign_in import AsUser, SignInMethods
from gpupool.contract.names import AGENT_NAMESPACE
from gpupool.health import LOOPBACK, Address, serving
from kubeclient.access import Access
from kubeclient.client import Kube
from kubeclient.https import connected


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    port: int = 0  # 0: any free one
    key: str = ""  # the owner signs in with it; empty: visitors sign in with tokens only
    cluster: str = "cluster"  # its name, in addresses
    samples: Mapping[str, str] = field(default_factory=dict)  # manifests to begin with, by name
    machines: tuple[MachineType, ...] = ()  # that node pools can be made of
    platform: Platform | None = None  # the owner's clusters; None: the console serves others
    history_of: HistoryOf | None = None  # where the past is
    agents: str = AGENT_NAMESPACE  # their namespace


def by_token(access: Access) -> AsUser:
    """Makes clients of the same API server, each with the token of its user."""

    @contextlib.asynccontextmanager
    async def as_user(token: str) -> AsyncIterator[Kube]:
        async def authorization() -> str:
            return f"Bearer {token}"

        async with connected(replace(access, authorization=authorization), "console") as kube:
            yield kube

    return as_user


async def run_console(
    owner: Kube | None,
    as_user: AsUser | None,
    new_model: NewModel,
    settings: ConsoleSettings,
    ready: Callable[[int], None],
) -> None:
    """Serves until cancelled. `ready` is called with the port. Raises CannotListen."""
    clock = asyncio.get_running_loop().time
    methods = SignInMethods(
        clock, settings.key, owner, as_user, settings.history_of, settings.agents
    )
    console = Console(
        methods,
        new_model,
        settings.cluster,
        settings.samples,
        settings.machines,
        settings.platform,
    )
    try:
        async with serving(console.application(), Address(LOOPBACK, settings.port)) as address:
            ready(address.port)
            await asyncio.Event().wait()
    finally:
        await console.sessions.end_all()
