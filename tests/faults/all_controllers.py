"""An API server with every controller, the garbage collector and the small scheduler, in process.

There is no kubelet: the test says what pods and nodes do.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from kubeclient.client import Kube
from kubeclient.errors import NotFound
from kubeclient.objects import Obj
from kubeclient.resources import NAMESPACES, STORAGE_CLASSES, Resource
from localkube import scheduler
from localkube.apiserver.security.identities import ADMIN
from localkube.apiserver.security.tokens import StaticTokens
from localkube.apiserver.server import build
from localkube.controllers.all import ControllerSettings, builtin_controllers
from localkube.controllers.garbage import Garbage
from localkube.controllers.run import run_controllers
from localkube.controllers.volume_claims import storage_class
from localkube.health import Health
from localkube.names import Names
from localkube.node_streams import Connection, NodeRefusal
from localkube.supervision import Supervisor
from tests.conformance.api_server import NoNodes
from tests.faults.in_process import certificates_for_tests

PATIENCE_S = 60.0  # beside other tests on two cores everything takes its time


class Broken(logging.Handler):
    """Every error that a program logs: a reconcile that broke, a callback that raised."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._found: dict[str, str] = {}  # by the place that raised

    @property
    def found(self) -> list[str]:
        return list(self._found.values())

    def emit(self, record: logging.LogRecord) -> None:
        more = {key: getattr(record, key) for key in ("controller", "key") if hasattr(record, key)}
        text = logging.Formatter().format(record)
        where = [line for line in text.splitlines() if line.startswith("  File")] or [text]
        self._found.setdefault(where[-1], f"{more} {text}")


class AllControllers:
    def __init__(self, kube: Kube, broken: Broken, programs: list[asyncio.Task[None]]) -> None:
        self.kube = kube
        self.broken = broken
        self._programs = programs

    def assert_all_live(self) -> None:
        for task in self._programs:
            if task.done():
                task.result()
                raise AssertionError(f"{task.get_name()} has ended")

    async def until(self, what: str, condition: Callable[[], Awaitable[bool]]) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not await condition():
                    self.assert_all_live()
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise AssertionError(f"never: {what}") from None

    async def made(self, resource: Resource, namespace: str, **metadata: object) -> Obj:
        """The object of the name, or the first with the label `app` of the value."""
        found: list[Obj] = []

        async def there() -> bool:
            for obj in (await self.kube.list(resource, namespace)).items:
                known = obj["metadata"] | {"app": obj["metadata"].get("labels", {}).get("app")}
                if all(known.get(key) == value for key, value in metadata.items()):
                    found.append(obj)
            return bool(found)

        await self.until(f"{resource.kind} {metadata}", there)
        return found[0]

    async def gone(self, resource: Resource, name: str, namespace: str = "") -> None:
        async def absent() -> bool:
            try:
                await self.kube.get(resource, name, namespace)
            except NotFound:
                return True
            return False

        await self.until(f"{resource.kind} {name} gone", absent)

    async def shows(
        self, resource: Resource, name: str, namespace: str, seen: Callable[[Obj], object]
    ) -> None:
        async def shown() -> bool:
            return bool(seen(await self.kube.get(resource, name, namespace)))

        await self.until(f"{resource.kind} {name} as wanted", shown)


async def _dial(node: str, pod_uid: str, port: int) -> Connection:
    raise NodeRefusal("there is no kubelet")


@asynccontextmanager
async def all_controllers(
    directory: Path, namespaces: tuple[str, ...]
) -> AsyncIterator[AllControllers]:
    certificates = certificates_for_tests()
    server = build(directory, certificates, StaticTokens(), NoNodes())
    broken = Broken()
    logging.getLogger().addHandler(broken)
    kube = server.client(ADMIN)
    settings = ControllerSettings(
        certificates.ca_pem.decode(), directory, directory / "volumes", _dial, Names()
    )
    work = {
        "controllers": run_controllers(builtin_controllers(settings), kube, Supervisor(Health())),
        "garbage": Garbage(kube).run(),
        "scheduler": scheduler.run(kube),
        "records": server.keep_records(),
    }
    try:
        for name in ("default", "kube-system", "kube-node-lease", *namespaces):
            await kube.create(NAMESPACES, {"metadata": {"name": name}})
        await kube.create(STORAGE_CLASSES, storage_class())
        programs = [asyncio.create_task(each, name=name) for name, each in work.items()]
        try:
            yield AllControllers(kube, broken, programs)
        finally:
            for task in programs:
                task.cancel()
            await asyncio.gather(*programs, return_exceptions=True)
    finally:
        logging.getLogger().removeHandler(broken)
        await server.end()
