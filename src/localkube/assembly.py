"""Puts a whole cluster together in one process: API server, controllers, scheduler and nodes.

Everybody but the API server is its client. What starts last stops first; nothing outlives `run`.
What a product adds comes in through `Extension`: see EXTENDING.md beside this file.

What fails before the programs start (the directory, the port, `set_up`), or is to say when the
cluster is ready (`ready`), ends the cluster. A program that fails does not, at no time: it is
started again (supervision.py), and /readyz and an event say so. A store that cannot be written does
not, either: writes are answered with an error until it can (apiserver/store/).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kubeclient.client import Kube
from kubeclient.objects import Obj
from kubeclient.resources import STORAGE_CLASSES
from localkube import kubeconfig, scheduler
from localkube.apiserver.admission.attributes import WriteCheck
from localkube.apiserver.request import User
from localkube.apiserver.security import certificates
from localkube.apiserver.security.identities import ADMIN, AUTHENTICATED, SCHEDULER
from localkube.apiserver.security.tokens import StaticTokens, admin_token
from localkube.apiserver.server import ApiServer, build
from localkube.controllers.all import ControllerSettings, builtin_controllers
from localkube.controllers.garbage import Garbage
from localkube.controllers.load_balancer import Balancers
from localkube.controllers.run import Controller, run_controllers
from localkube.controllers.volume_claims import storage_class
from localkube.data_directory import pods_directory
from localkube.health import Check, Health
from localkube.kubelet.fleet import Fleet
from localkube.kubelet.hosted import Hosted
from localkube.kubelet.images import KnownImages
from localkube.kubelet.node_hooks import NodeHooks, NoHooks
from localkube.kubelet.settings import FleetSettings
from localkube.names import Names
from localkube.node_streams import Connection, NodeRefusal
from localkube.program_events import ProgramEvents
from localkube.supervision import Program, Supervisor, Work

_CONTROLLERS = User("system:kube-controller-manager", ("system:masters", AUTHENTICATED))
_NODES = User("localkube:nodes", ("system:masters", AUTHENTICATED))
_VOLUMES = "volumes"  # of claims: the one place of the machine that pods may mount

_HOPELESS = 3  # failures in a row of a program, before readiness is waited for no longer

log = logging.getLogger(__name__)


class ProgramFails(Exception):
    """A program keeps failing, and the cluster does not get ready."""


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    name: str
    # The cluster's own directory, and the only place that it writes to. It exists, has mode 0700,
    # and is locked by the caller (`localkube.data_directory.Lock`): no second server can run on it.
    directory: Path
    port: int = 0  # of the API server on the loopback interface; 0 takes any free one
    private: tuple[Path, ...] = ()  # directories of this machine that no container may see
    wall_required: bool = False  # containers run behind a wall (docs/pods.md), or not at all

    @property
    def kubeconfig(self) -> Path:
        return self.directory / "kubeconfig"

    @property
    def pods(self) -> Path:
        return pods_directory(self.directory)


@dataclass(frozen=True, slots=True)
class RunningCluster:
    """What extensions may use of a cluster that answers."""

    port: int
    is_new: bool  # nothing was in its store when it started
    _server: ApiServer
    fleet: Fleet

    @property
    def health(self) -> Health:
        """Which programs work, and which fail."""
        return self._server.api.health

    def client(self, user: User) -> Kube:
        """A client inside the process, with that user's rights."""
        return self._server.client(user)

    def admin(self) -> Kube:
        return self.client(ADMIN)


async def _nothing(_: RunningCluster) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Extension:
    """What a product adds to a cluster. EXTENDING.md describes each field."""

    names: Names = field(default_factory=Names)
    hooks: NodeHooks = field(default_factory=NoHooks)
    images: KnownImages = field(default_factory=KnownImages)
    packages: tuple[Path, ...] = ()
    hosted: Mapping[str, Hosted] = field(default_factory=dict)
    controllers: tuple[Controller, ...] = ()
    roles: Iterable[Obj] = ()
    # By resource, "things.example.com": says why a write to it is refused, or nothing.
    checks: Mapping[str, WriteCheck] = field(default_factory=dict)
    # How many load balancers Services may have; None: any number.
    balancers: Balancers | None = None
    # Called once the API server answers, before any program starts.
    set_up: Callable[[RunningCluster], Awaitable[None]] = _nothing
    # Programs that run beside the built-in ones, by name; all are clients of the API server. Each
    # is made anew whenever it has to start again.
    programs: Callable[[RunningCluster], Mapping[str, Program]] = lambda _: {}
    # Returns once the cluster may be called ready; the programs run by then.
    ready: Callable[[RunningCluster], Awaitable[None]] = _nothing
    # Runs in place of the built-in scheduler, as system:kube-scheduler.
    scheduler: Callable[[Kube], Work] = scheduler.run


async def run_cluster(
    settings: ClusterSettings,
    extension: Extension,
    *,
    ready: Callable[[RunningCluster], None],
    stop: asyncio.Event,
    insists: bool = False,
) -> None:
    """Runs until `stop` is set. Raises before `ready` when it cannot start.

    When a program keeps failing and `Extension.ready` still waits, `ready` is called all the same:
    a cluster that answers can be repaired. `insists`: raises ProgramFails instead."""
    made = certificates.ensure(settings.directory)
    token = admin_token(settings.directory, kubeconfig.read_token(settings.kubeconfig))
    tokens = StaticTokens()
    tokens.add(token, ADMIN)
    fleet = Fleet(_fleet_settings(settings, extension))
    server = build(settings.directory, made, tokens, fleet, extension.checks)
    # Before `bootstrap`, which fills a new store.
    is_new = not any(server.api.store.counts().values())
    try:
        # Before `bootstrap`, which needs the port: it may be one that was drawn just now.
        http = await server.listen(settings.port)
        try:
            await server.bootstrap(http.port, extension.roles)
            cluster = RunningCluster(http.port, is_new, server, fleet)
            where = f"https://127.0.0.1:{http.port}"
            kubeconfig.write(
                settings.kubeconfig,
                kubeconfig.Kubeconfig(settings.name, where, made.ca_pem, token, extension.names),
            )
            # Only once: a user who deletes the class must not get it back at the next start.
            if is_new:
                default_class = storage_class(extension.names.provisioner)
                await cluster.admin().create(STORAGE_CLASSES, default_class)
            if not await _unless_stopped(stop, extension.set_up(cluster)):
                return
            added = extension.programs(cluster)
            events = ProgramEvents(server.client(_CONTROLLERS))
            supervisor = Supervisor(cluster.health, events)
            programs = _programs(cluster, settings, extension, supervisor) | dict(added)
            programs["events-of-programs"] = events.run
            usable = _usable(extension.ready(cluster), cluster.health, insists=insists)
            await _run_until(stop, supervisor, programs, usable, lambda: ready(cluster))
        finally:
            await http.close(grace_s=2.0)
    finally:
        await server.end()


def _fleet_settings(settings: ClusterSettings, extension: Extension) -> FleetSettings:
    return FleetSettings(
        settings.pods,
        host_paths=(settings.directory / _VOLUMES,),
        private=settings.private,
        wall_required=settings.wall_required,
        packages=extension.packages,
        hooks=extension.hooks,
        hosted=extension.hosted,
        images=extension.images,
        names=extension.names,
    )


def _programs(
    cluster: RunningCluster,
    settings: ClusterSettings,
    extension: Extension,
    supervisor: Supervisor,
) -> dict[str, Program]:
    server, fleet = cluster._server, cluster.fleet
    controllers = server.client(_CONTROLLERS)
    controller_settings = ControllerSettings(
        ca_pem=server.certificates.ca_pem.decode(),
        authority=settings.directory,
        volumes=settings.directory / _VOLUMES,
        dial=_dial(fleet),
        names=extension.names,
        balancers=extension.balancers,
    )

    def run_all() -> Work:
        every = [*builtin_controllers(controller_settings), *extension.controllers]
        return run_controllers(every, controllers, supervisor)

    garbage = "garbage-collector"
    return {
        "controllers": run_all,
        garbage: lambda: Garbage(controllers, supervisor.objects_of(garbage)).run(),
        "scheduler": lambda: extension.scheduler(server.client(SCHEDULER)),
        "kubelet": lambda: fleet.run(server.client(_NODES), supervisor),
        "records": server.keep_records,
        "aggregation": server.watch_api_services,
    }


def _dial(fleet: Fleet) -> Callable[[str, str, int], Awaitable[Connection]]:
    async def dial(node: str, pod_uid: str, port: int) -> Connection:
        streams = fleet.streams(node)
        if streams is None:
            raise NodeRefusal(f"node {node} cannot be reached")
        return await streams.dial(pod_uid, port)

    return dial


async def _run_until(
    stop: asyncio.Event,
    supervisor: Supervisor,
    programs: dict[str, Program],
    usable: Awaitable[None],
    started: Callable[[], None],
) -> None:
    async with asyncio.TaskGroup() as tasks:
        running = [
            tasks.create_task(supervisor.keep(name, program), name=name)
            for name, program in programs.items()
        ]
        if await _unless_stopped(stop, usable):
            started()
        await stop.wait()
        for task in reversed(running):
            task.cancel()


async def _usable(ready: Awaitable[None], health: Health, *, insists: bool) -> None:
    """Returns when the cluster is ready, or when a program fails again and again meanwhile."""
    hopeless = asyncio.Event()

    def failed() -> None:
        if health.fails_lastingly(_HOPELESS):
            hopeless.set()

    health.on_failure(failed)
    if await _unless_stopped(hopeless, ready):
        return
    found = health.fails_lastingly(_HOPELESS) or Check("a program", "it was stopped", ())
    words = f"{found.name} failed: {found.failure}"
    if insists:
        raise ProgramFails(words)
    log.error("the cluster goes on without a program", extra={"why": words})


async def _unless_stopped(stop: asyncio.Event, work: Awaitable[None]) -> bool:
    """Waits for the work, and raises what it raises. False: `stop` was set first, and the work was
    cancelled. An extension that waits for ever must not keep the cluster from stopping."""
    working, stopping = asyncio.ensure_future(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
            return True
        return False
    finally:
        working.cancel()
        stopping.cancel()
        await asyncio.gather(working, stopping, return_exceptions=True)
