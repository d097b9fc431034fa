"""A local cluster of gpupool: a localkube cluster with GPU nodes, node pools and our programs.

Everything is added through the fields of `localkube.assembly.Extension`; nothing here uses the
internals of the API server or the nodes.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable
from pathlib import Path

import gpupool
from gpupool.admission.review import Rules
from gpupool.admission.run import AdmissionSettings, run_admission
from gpupool.agent.endpoint import on_accepted
from gpupool.agent.limiter import LimiterPlace
from gpupool.agent.run import run_agent
from gpupool.agent.settings import AgentSettings
from gpupool.contract.names import AGENT_NAMESPACE, AGENT_PORT, SCHEDULER_NAME
from gpupool.core.ways import Way
from gpupool.engine.policies import DEFAULT
from gpupool.hardware.driver import Driver
from gpupool.hardware.simdriver import NodeFiles
from gpupool.hardware.simulated import SimulatedDriver
from gpupool.history.collector import CollectorSettings, collect
from gpupool.history.database import FILE
from gpupool.history.store import Store
from gpupool.local import node_pool, pool_autoscaler, pool_quota
from gpupool.local.config import agents
from gpupool.local.config.nodepools import NODE_POOLS, nodepool_crd, nodepool_object
from gpupool.local.config.nodes import cluster_nodes
from gpupool.local.config.settings import NAMES, LocalSettings
from gpupool.local.images import known_images
from gpupool.local.node_gpus import DRIVER, Cards, NodeGpus, node_walls
from gpupool.local.pool_machines import machines_check
from gpupool.local.roles import role_objects
from gpupool.scheduler.elected import LEASE, Elected
from kubeclient.client import Kube
from kubeclient.credentials import find_access
from kubeclient.errors import AlreadyExists
from kubeclient.https import connected
from kubeclient.lease import Candidacy
from kubeclient.names import DEFAULT_SCHEDULER_NAME
from kubeclient.resources import CRDS, DAEMON_SETS, SERVICE_ACCOUNTS
from localkube import assembly
from localkube.apiserver.admission.attributes import WriteCheck
from localkube.apiserver.request import User
from localkube.apiserver.security.identities import (
    AUTHENTICATED,
    SCHEDULER,
    service_account_groups,
)
from localkube.assembly import ClusterSettings, Extension, RunningCluster
from localkube.kubelet import process_table
from localkube.kubelet.container_files import volume_directory
from localkube.kubelet.hosted import Hosted, ProgramContext, log_to_containers
from localkube.kubelet.node_files import node_hardware
from localkube.kubelet.process_table import MARK

log = logging.getLogger(__name__)

ADMISSION = User(
    "system:serviceaccount:kube-system:gpupool-admission",
    (*service_account_groups("kube-system"), AUTHENTICATED),
)
HISTORY = User(
    "system:serviceaccount:kube-system:gpupool-history",
    (*service_account_groups("kube-system"), AUTHENTICATED),
)
_NODE_CLAIM = "authentication.kubernetes.io/node-name"
# Pods that name the default scheduler are scheduled by us, too: a local cluster has no other.
# The lock of the data directory guarantees a single candidate. Its identity is always the same, so
# that after a restart it need not wait until its own old Lease has expired.
_CANDIDACY = Candidacy(
    LEASE,
    "local-cluster",
    frozenset({DEFAULT_SCHEDULER_NAME, SCHEDULER_NAME}),
    goes_first=True,  # admission lets nobody else write allocations here
)


async def run_cluster(
    settings: LocalSettings, *, ready: Callable[[RunningCluster], None], stop: asyncio.Event
) -> None:
    """Runs until `stop` is set. Raises before `ready` when it cannot start."""
    home = os.environ.get("GPUPOOL_HOME")
    where = ClusterSettings(
        settings.name,
        settings.data_dir,
        settings.port,
        # The home holds the administrators' credentials of all clusters: no container may see it.
        private=(Path(home),) if home else (),
        wall_required=settings.wall_required,
    )
    extension = GpuCluster(settings, where).extension()
    await assembly.run_cluster(where, extension, ready=ready, stop=stop)


class GpuCluster:
    """What gpupool adds to one localkube cluster."""

    def __init__(self, settings: LocalSettings, where: ClusterSettings) -> None:
        self._settings = settings
        self._where = where
        self._cluster: RunningCluster | None = None
        self._admits = asyncio.Event()  # admission is registered

    def extension(self) -> Extension:
        settings = self._settings
        spec = settings.spec
        log_to_containers("gpupool.agent")
        return Extension(
            names=NAMES,
            hooks=NodeGpus(
                self._where.pods,
                {
                    name: Cards(
                        machine.gpu.name,
                        machine.gpu.memory_mib,
                        machine.gpu_count,
                        machine.gpu_driver,
                    )
                    for name, machine in spec.instance_types.items()
                    if machine.gpu is not None
                },
                settings.real_gpus,
            ),
            images=known_images(spec),
            packages=(Path(gpupool.__file__).resolve().parent,),
            hosted={agents.IMAGE: Hosted(self._run_agent, AGENT_NAMESPACE, agents.SERVICE_ACCOUNT)},
            balancers=settings.services,
            checks={pool_quota.RESOURCE: _pool_check(settings)},
            controllers=(
                node_pool.controller(spec, settings.quotas, settings.machines),
                pool_autoscaler.controller(spec, settings.quotas, real_gpus=settings.real_gpus),
            ),
            roles=role_objects(),
            set_up=self._set_up,
            programs=lambda cluster: {
                "admission": lambda: self._admission(cluster),
                "history": lambda: self._history(cluster),
            },
            ready=self._is_ready,
            scheduler=lambda kube: Elected(kube, DEFAULT, _CANDIDACY).run(),
        )

    async def _set_up(self, cluster: RunningCluster) -> None:
        self._cluster = cluster
        kube = cluster.admin()
        # A cluster file that was applied before is not applied again: people may have scaled pools
        # since.
        if self._settings.apply_spec or cluster.is_new:
            await _apply_pools(kube, self._settings)
        await _apply_agents(kube, self._settings)

    async def _is_ready(self, _: RunningCluster) -> None:
        # A GPU pod that is created before admission is registered would never see its card.
        await self._admits.wait()

    async def _admission(self, cluster: RunningCluster) -> None:
        rules = Rules(schedulers=frozenset({SCHEDULER.name}))
        await run_admission(
            cluster.client(ADMISSION),
            AdmissionSettings(rules),
            ready=lambda _port: self._admits.set(),
        )

    async def _history(self, cluster: RunningCluster) -> None:
        # Port-forward needs a real connection: clients inside the process have no WebSockets.
        access = await find_access({}, kubeconfig=str(self._where.kubeconfig))
        with Store(self._where.directory / FILE) as store:
            async with connected(access, "gpupool-history") as asks:
                await collect(cluster.client(HISTORY), store, CollectorSettings(), asks)

    async def _run_agent(self, around: ProgramContext) -> int:
        """The same program as on real nodes. Here hundreds of agents run in this one process, so
        each reads the simulated driver's state file instead of loading its library."""
        cluster, pods = self._cluster, self._where.pods
        assert cluster is not None  # the nodes start after `_set_up`
        files = NodeFiles(node_hardware(pods, around.node))
        # Where mounts are not possible, the limiter would limit nobody: do not promise isolation.
        mounts = await cluster.fleet.mounts_into_containers()
        await run_agent(
            AgentSettings(
                around.node,
                # The hook of the node does for containers what NVIDIA's runtime does (node_gpus).
                way=Way.RUNTIME,
                plugins=around.mounts[agents.PLUGINS],
                pod_resources=around.mounts[agents.POD_RESOURCES] / "kubelet.sock",
                install=self._limiter(around.node) if mounts else None,
                # Processes of simulated nodes have no cgroup of their pod. The launcher marks them
                # in their environment.
                owner=_container,
                container=_container,
                serve=on_accepted(around.ports.listen(AGENT_PORT).accept),
                volumes=lambda pod, volume: volume_directory(pods, pod, volume),
                walls=node_walls(files) if mounts and not self._settings.real_gpus else None,
            ),
            _real_driver() if self._settings.real_gpus else SimulatedDriver(files.state),
            cluster.client(_agent(around.node)),
        )
        return 0

    def _limiter(self, node: str) -> LimiterPlace:
        driver = "" if self._settings.real_gpus else f"{DRIVER}/lib"
        # Not on the node's disk, where pods with a hostPath could replace it.
        return LimiterPlace(node_hardware(self._where.pods, node) / "limiter", driver)


def _pool_check(settings: LocalSettings) -> WriteCheck:
    checks = (pool_quota.pool_check(settings.quotas), machines_check(settings.machines))
    return lambda *asked: next((why for each in checks if (why := each(*asked))), "")


def _agent(node: str) -> User:
    """Who an agent is, as the token of its pod says: the chart's policies look at the node."""
    return User(
        f"system:serviceaccount:{AGENT_NAMESPACE}:{agents.SERVICE_ACCOUNT}",
        (*service_account_groups(AGENT_NAMESPACE), AUTHENTICATED),
        extra={_NODE_CLAIM: (node,)},
    )


def _container(pid: int) -> str:
    return process_table.variable(pid, MARK)


def _real_driver() -> Driver:
    from gpupool.hardware.nvml import NvmlDriver  # few local clusters have cards of their own

    return NvmlDriver()


async def _apply_agents(kube: Kube, settings: LocalSettings) -> None:
    """Runs the agent on every node with cards. With real GPUs that is one node: the machine's own
    cards can belong to one node only."""
    spec = settings.spec
    planned = cluster_nodes(spec.pools, network=spec.network)
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


async def _apply_pools(kube: Kube, settings: LocalSettings) -> None:
    """Makes the pools as the cluster file says; pools that it does not name stay."""
    crd = nodepool_crd(settings.spec.instance_types)
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
