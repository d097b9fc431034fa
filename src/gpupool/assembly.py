"""A whole local cluster: API server, controllers, scheduler and nodes, wired in one process.

Everybody but the API server is its client. What starts last stops first; nothing outlives `stop`.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpupool import __version__
from gpupool.admission.review import Rules
from gpupool.admission.run import AdmissionSettings, run_admission
from gpupool.contract.names import SCHEDULER_NAME
from gpupool.contract.node_streams import Connection, NodeRefusal
from gpupool.engine.policies import DEFAULT, POLICIES
from gpupool.engine.policies.mix import Mix
from gpupool.kube.client import Kube
from gpupool.kube.errors import AlreadyExists
from gpupool.kube.resources import CRDS, NODE_POOLS, STORAGE_CLASSES
from gpupool.localcluster.apiserver.discovery import KUBERNETES_VERSION
from gpupool.localcluster.apiserver.request import User
from gpupool.localcluster.apiserver.security import certificates, kubeconfig
from gpupool.localcluster.apiserver.security.identities import (
    ADMIN,
    AUTHENTICATED,
    SCHEDULER,
    service_account_groups,
)
from gpupool.localcluster.apiserver.security.tokens import StaticTokens, admin_token
from gpupool.localcluster.apiserver.server import ApiServer, build
from gpupool.localcluster.config.nodepools import nodepool_crd, nodepool_object
from gpupool.localcluster.config.nodes import Versions
from gpupool.localcluster.config.settings import ClusterSettings
from gpupool.localcluster.controllers.all import Surroundings, cluster_controllers
from gpupool.localcluster.controllers.garbage import Garbage
from gpupool.localcluster.controllers.load_balancer import Dial
from gpupool.localcluster.controllers.run import run_controllers
from gpupool.localcluster.controllers.volume_claims import storage_class
from gpupool.localcluster.kubelet.fleet import Fleet
from gpupool.localcluster.kubelet.settings import FleetSettings
from gpupool.scheduler.run import Scheduler, SchedulerSettings

CONTROLLERS = User("system:kube-controller-manager", ("system:masters", AUTHENTICATED))
FLEET = User("gpupool:nodes", ("system:masters", AUTHENTICATED))
ADMISSION = User(
    "system:serviceaccount:kube-system:gpupool-admission",
    (*service_account_groups("kube-system"), AUTHENTICATED),
)
# Pods that name the default scheduler are ours too: a local cluster has no other.
SCHEDULER_NAMES = frozenset({"default-scheduler", SCHEDULER_NAME})

_VOLUMES = "volumes"  # of claims: the one place of the machine that pods may mount


@dataclass(frozen=True, slots=True)
class Running:
    port: int


async def run_cluster(
    settings: ClusterSettings, *, ready: Callable[[Running], None], stop: asyncio.Event
) -> None:
    """Runs until `stop` is set. Raises before `ready` when it cannot start."""
    directory = settings.data_dir
    made = certificates.ensure(directory)
    token = admin_token(directory, kubeconfig.read_token(settings.kubeconfig))
    tokens = StaticTokens()
    tokens.add(token, ADMIN)
    volumes = directory / _VOLUMES
    home = tuple(Path(given) for given in (os.environ.get("GPUPOOL_HOME"),) if given)
    fleet = Fleet(FleetSettings(directory / "pods", host_paths=(volumes,), private=home))
    server = build(directory, made, tokens, fleet)
    is_new = not any(server.api.store.counts().values())
    try:
        http = await server.listen(settings.port)
        try:
            await server.bootstrap(http.port)
            where = f"https://127.0.0.1:{http.port}"
            kubeconfig.write(
                settings.kubeconfig,
                kubeconfig.Kubeconfig(settings.name, where, made.ca_pem, token),
            )
            if settings.apply_spec or is_new:
                await _apply_pools(server.client(ADMIN), settings)
            admits = asyncio.Event()
            programs = _programs(server, fleet, settings) | {
                "admission": _admission(server, lambda _port: admits.set())
            }
            await _run_until(stop, programs, admits, lambda: ready(Running(http.port)))
        finally:
            await http.close(grace_s=2.0)
    finally:
        await server.end()


def _programs(
    server: ApiServer, fleet: Fleet, settings: ClusterSettings
) -> dict[str, Coroutine[Any, Any, None]]:
    controllers = server.client(CONTROLLERS)
    around = Surroundings(
        ca_pem=server.certificates.ca_pem.decode(),
        spec=settings.spec,
        versions=Versions(KUBERNETES_VERSION, f"gpupool://{__version__}"),
        quotas=settings.quotas,
        volumes=settings.data_dir / _VOLUMES,
        dial=_dial(fleet),
    )
    return {
        "controllers": run_controllers(cluster_controllers(around), controllers),
        "garbage": Garbage(controllers).run(),
        "scheduler": Scheduler(server.client(SCHEDULER), _scheduling()).run(),
        "nodes": fleet.run(server.client(FLEET)),
        "records": server.keep_records(),
    }


def _scheduling() -> SchedulerSettings:
    return SchedulerSettings(POLICIES[DEFAULT](Mix()), SCHEDULER_NAMES)


def _dial(fleet: Fleet) -> Dial:
    async def dial(node: str, pod_uid: str, port: int) -> Connection:
        streams = fleet.streams(node)
        if streams is None:
            raise NodeRefusal(f"node {node} cannot be reached")
        return await streams.dial(pod_uid, port)

    return dial


def _admission(server: ApiServer, registered: Callable[[int], None]) -> Coroutine[Any, Any, None]:
    rules = Rules(schedulers=frozenset({SCHEDULER.name}))
    return run_admission(server.client(ADMISSION), AdmissionSettings(rules), ready=registered)


async def _run_until(
    stop: asyncio.Event,
    programs: dict[str, Coroutine[Any, Any, None]],
    usable: asyncio.Event,
    started: Callable[[], None],
) -> None:
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(work, name=name) for name, work in programs.items()]
        await usable.wait()
        started()
        await stop.wait()
        for task in reversed(running):
            task.cancel()


async def _apply_pools(kube: Kube, settings: ClusterSettings) -> None:
    """Makes the pools what the cluster file says; those that it does not name stay."""
    with contextlib.suppress(AlreadyExists):
        await kube.create(STORAGE_CLASSES, storage_class())
    crd = nodepool_crd()
    try:
        await kube.create(CRDS, crd)
    except AlreadyExists:  # perhaps of an older version of ours
        await kube.patch(CRDS.path(name=crd["metadata"]["name"]), {"spec": crd["spec"]})
    for pool in settings.spec.pools:
        wanted = nodepool_object(pool)
        try:
            await kube.create(NODE_POOLS, wanted)
        except AlreadyExists:
            path = NODE_POOLS.path(name=wanted["metadata"]["name"])
            await kube.patch(path, {"spec": wanted["spec"]})
