"""A whole local cluster: API server, controllers, scheduler and nodes, wired in one process.

Everybody but the API server is its client. What starts last stops first; nothing outlives `stop`.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpupool import __version__
from gpupool.admission.review import Rules
from gpupool.admission.run import AdmissionSettings, run_admission
from gpupool.agent.run import run_agent
from gpupool.agent.settings import AgentSettings
from gpupool.contract.names import (
    AGENT_NAMESPACE,
    DEFAULT_SCHEDULER_NAME,
    LEASE_NAMESPACE,
    SCHEDULER_LEASE,
    SCHEDULER_NAME,
)
from gpupool.contract.node_streams import Connection, NodeRefusal
from gpupool.engine.policies import DEFAULT
from gpupool.hardware.driver import Driver
from gpupool.hardware.limiter import LimiterError, install
from gpupool.hardware.limiter import Settings as Limits
from gpupool.hardware.simdriver import NodeFiles
from gpupool.hardware.simulated import SimulatedDriver
from gpupool.kube.client import Kube
from gpupool.kube.errors import AlreadyExists
from gpupool.kube.lease import Candidacy
from gpupool.kube.resources import (
    CRDS,
    DAEMON_SETS,
    NODE_POOLS,
    SERVICE_ACCOUNTS,
    STORAGE_CLASSES,
)
from gpupool.kubeletapi.messages import Mount
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
from gpupool.localcluster.config import agents
from gpupool.localcluster.config.nodepools import nodepool_crd, nodepool_object
from gpupool.localcluster.config.nodes import Versions, cluster_nodes
from gpupool.localcluster.config.settings import ClusterSettings
from gpupool.localcluster.controllers.all import Surroundings, cluster_controllers
from gpupool.localcluster.controllers.garbage import Garbage
from gpupool.localcluster.controllers.load_balancer import Dial
from gpupool.localcluster.controllers.run import run_controllers
from gpupool.localcluster.controllers.volume_claims import storage_class
from gpupool.localcluster.kubelet import process_table
from gpupool.localcluster.kubelet.container_files import volume_directory
from gpupool.localcluster.kubelet.fleet import Fleet
from gpupool.localcluster.kubelet.hosted import Program as HostedProgram
from gpupool.localcluster.kubelet.hosted import Surroundings as Hosted
from gpupool.localcluster.kubelet.hosted import log_to_containers
from gpupool.localcluster.kubelet.images import Image
from gpupool.localcluster.kubelet.launcher import MARK
from gpupool.localcluster.kubelet.node_files import node_disk, node_driver
from gpupool.localcluster.kubelet.node_gpus import DRIVER
from gpupool.localcluster.kubelet.settings import Cards, FleetSettings
from gpupool.scheduler.elected import Elected

log = logging.getLogger(__name__)

CONTROLLERS = User("system:kube-controller-manager", ("system:masters", AUTHENTICATED))
FLEET = User("gpupool:nodes", ("system:masters", AUTHENTICATED))
ADMISSION = User(
    "system:serviceaccount:kube-system:gpupool-admission",
    (*service_account_groups("kube-system"), AUTHENTICATED),
)
# Pods that name the default scheduler are ours too: a local cluster has no other.
# Always the same one, by the lock of the data directory: it need not wait for itself to be gone.
_CANDIDACY = Candidacy(
    LEASE_NAMESPACE,
    SCHEDULER_LEASE,
    "local-cluster",
    frozenset({DEFAULT_SCHEDULER_NAME, SCHEDULER_NAME}),
    goes_first=True,  # admission lets nobody else write allocations here
)

AGENT = User(
    f"system:serviceaccount:{AGENT_NAMESPACE}:{agents.SERVICE_ACCOUNT}",
    (*service_account_groups(AGENT_NAMESPACE), AUTHENTICATED),
)
_VERSIONS = Versions(KUBERNETES_VERSION, f"gpupool://{__version__}")
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

    async def agent(around: Hosted) -> int:
        # A limiter that cannot be mounted holds nobody, so none is promised.
        limits = await fleet.mounts_into_containers()
        limiter = _limiter(settings, around.node) if limits else ()
        return await _run_agent(around, server.client(AGENT), settings, limiter)

    fleet = Fleet(_nodes(settings, agent))
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
            await _apply_agents(server.client(ADMIN), settings)
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
        versions=_VERSIONS,
        quotas=settings.quotas,
        volumes=settings.data_dir / _VOLUMES,
        dial=_dial(fleet),
    )
    return {
        "controllers": run_controllers(cluster_controllers(around), controllers),
        "garbage": Garbage(controllers).run(),
        "scheduler": Elected(server.client(SCHEDULER), DEFAULT, _CANDIDACY).run(),
        "nodes": fleet.run(server.client(FLEET)),
        "records": server.keep_records(),
    }


def _nodes(settings: ClusterSettings, agent: HostedProgram) -> FleetSettings:
    log_to_containers("gpupool.agent")
    spec = settings.spec
    return FleetSettings(
        _pods(settings),
        host_paths=(settings.data_dir / _VOLUMES,),
        private=tuple(Path(given) for given in (os.environ.get("GPUPOOL_HOME"),) if given),
        cards={
            name: Cards(machine.gpu.name, machine.gpu.memory_mib, machine.gpu_count)
            for name, machine in spec.instance_types.items()
            if machine.gpu is not None
        },
        real_cards=settings.real_gpus,
        hosted={agents.IMAGE: agent},
        images={
            name: Image(image.command, image.args, image.directory)
            for name, image in spec.images.items()
        },
    )


def _pods(settings: ClusterSettings) -> Path:
    return settings.data_dir / "pods"


async def _run_agent(
    around: Hosted, kube: Kube, settings: ClusterSettings, limiter: tuple[Mount, ...]
) -> int:
    """The same program as on real nodes; but for the driver, hundreds share this process."""
    files = NodeFiles(node_driver(_pods(settings), around.node))
    await run_agent(
        AgentSettings(
            around.node,
            plugins=around.mounts[agents.PLUGINS],
            pod_resources=around.mounts[agents.POD_RESOURCES] / "kubelet.sock",
            limiter=limiter,
            owner=lambda pid: process_table.variable(pid, MARK),
            volumes=lambda pod, volume: volume_directory(_pods(settings), pod, volume),
        ),
        _real_driver() if settings.real_gpus else SimulatedDriver(files.state),
        kube,
    )
    return 0


def _real_driver() -> Driver:
    from gpupool.hardware.nvml import NvmlDriver  # few local clusters have cards of their own

    return NvmlDriver()


def _limiter(settings: ClusterSettings, node: str) -> tuple[Mount, ...]:
    """The limiter as the node has it on its disk, for containers that are held to their share."""
    driver = "" if settings.real_gpus else f"{DRIVER}/lib"
    try:
        files = install(node_disk(_pods(settings), node) / "opt/gpupool", Limits(driver=driver))
    except LimiterError as error:
        log.error("shares are not isolated", extra={"node": node, "error": str(error)})
        return ()
    return tuple(Mount(inside, host, read_only=True) for host, inside in files.mounts)


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


async def _apply_agents(kube: Kube, settings: ClusterSettings) -> None:
    """On every node with cards; this machine's own cards are those of one node."""
    spec = settings.spec
    planned = cluster_nodes(spec.pools, network=spec.network, versions=_VERSIONS)
    real = settings.real_gpus
    nodes = agents.first_with_cards(spec, planned) if real else agents.with_cards(spec)
    with contextlib.suppress(AlreadyExists):
        await kube.create(SERVICE_ACCOUNTS, agents.agent_account())
    wanted = agents.agent_daemon_set(nodes)
    try:
        await kube.create(DAEMON_SETS, wanted)
    except AlreadyExists:  # perhaps of an older version of ours
        metadata = wanted["metadata"]
        path = DAEMON_SETS.path(metadata["namespace"], metadata["name"])
        await kube.patch(path, {"spec": wanted["spec"]})


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
