"""Fleet: all nodes of a local cluster in one object, in the API server's own process.

It takes over every Node object with the label of its nodes, keeps it ready, and runs the pods that
are bound to it. Thousands of nodes share one watch of pods, one queue and one heap of timers.

Each part is supervised on its own: a part that fails is started again, and the containers go on.
Only what concerns all parts, such as the directory of pods, starts the fleet anew.
"""

import asyncio
import datetime
import time
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from kubeclient.client import Kube
from kubeclient.errors import NotFound
from kubeclient.events import Recorder
from kubeclient.mirror import Mirror
from kubeclient.objects import Obj
from kubeclient.resources import ENDPOINTS, NAMESPACES, NODES, SERVICES
from localkube.about import PACKAGE
from localkube.health import Health
from localkube.kubelet.container_devices import ContainerDevices
from localkube.kubelet.container_start import Starter
from localkube.kubelet.devices.all_devices import Devices
from localkube.kubelet.environment import service_variables
from localkube.kubelet.exec_process import ExecProcesses
from localkube.kubelet.heartbeats import Heartbeats
from localkube.kubelet.hosted import HostedPrograms
from localkube.kubelet.launches import Launches
from localkube.kubelet.log_reading import Gate
from localkube.kubelet.node import LocalNode, node_from, refresh
from localkube.kubelet.node_files import SocketPaths, make_private, set_aside
from localkube.kubelet.notices import Notices
from localkube.kubelet.pace import Pace
from localkube.kubelet.pod_feed import PodFeed
from localkube.kubelet.pods import Pods
from localkube.kubelet.runtime import TimerRuntime
from localkube.kubelet.runtime_process import ProcessRuntime
from localkube.kubelet.settings import PROCESS, TIMER, FleetSettings
from localkube.kubelet.streams import PodStreams
from localkube.kubelet.usage import Usage, UsageWatch
from localkube.kubelet.volumes import Objects, Storage, sweep_storage
from localkube.new_tasks import add_task
from localkube.node_streams import NodeStreams
from localkube.removal import remove_tree
from localkube.supervision import Program, Supervisor

_HEARTBEAT_WORKERS = 32
_ADD_AGAIN_S = 5.0
_API_HOST, _API_PORT = "127.0.0.1", 443


class _Host(NamedTuple):
    """What containers run on, and what outlives the nodes."""

    launches: Launches
    hosted: HostedPrograms
    sockets: SocketPaths
    tasks: asyncio.TaskGroup
    api: tuple[str, int]  # where the API server is
    supervisor: Supervisor


@dataclass(frozen=True, slots=True)
class _Live:
    """The parts of a running fleet."""

    nodes: Mirror
    pods: PodFeed
    namespaces: Mirror
    services: Mirror
    recorder: Recorder
    beats: Heartbeats
    keeper: Pods
    devices: Devices
    processes: ProcessRuntime
    streams: PodStreams
    tasks: asyncio.TaskGroup
    supervisor: Supervisor

    def keep(self, part: str, program: Program) -> None:
        """Runs the part for as long as the fleet."""
        kept = self.supervisor.keep(f"kubelet/{part}", program)
        add_task(self.tasks, kept, f"kubelet-{part}")


class Fleet:
    def __init__(self, settings: FleetSettings) -> None:
        self._settings = settings
        self._nodes: dict[str, LocalNode] = {}
        self._usage = Usage()
        self._live: _Live | None = None

    def streams(self, node: str) -> NodeStreams | None:
        if self._live is None or node not in self._nodes:
            return None
        return self._live.streams

    async def mounts_into_containers(self) -> bool:
        """Whether containers have their own view of the machine, with volumes at their mount
        paths."""
        return self._live is not None and await self._live.processes.launches.namespaces()

    def node_usage(self) -> dict[str, Obj]:
        if self._live is None:
            return {}
        self._usage.sample(self._live.processes)
        return self._usage.nodes(self._nodes, self._live.keeper)

    def pod_usage(self) -> dict[tuple[str, str], list[Obj]]:
        if self._live is None:
            return {}
        self._usage.sample(self._live.processes)
        return self._usage.pods(self._live.keeper)

    async def run(self, kube: Kube, supervisor: Supervisor | None = None) -> None:
        """Runs until cancelled, and then stops every process of every pod."""
        supervisor = supervisor or Supervisor(Health())
        directory = make_private(self._settings.directory)
        launches = Launches(directory / "run", isolate=self._settings.isolate)
        hosted = HostedPrograms()
        sockets = SocketPaths(directory)
        try:
            async with asyncio.TaskGroup() as tasks:
                api = await _api_address(kube)
                host = _Host(launches, hosted, sockets, tasks, api, supervisor)
                self._live = live = self._assemble(kube, host)
                await self._follow(live)
                self._start_workers(live)
        finally:
            # First: requests for streams and usage must not reach parts that are being closed.
            self._live = None
            self._nodes.clear()
            await hosted.close()
            await launches.close()
            sockets.close()

    def _assemble(self, kube: Kube, host: _Host) -> _Live:
        settings, directory = self._settings, self._settings.directory
        launches, tasks = host.launches, host.tasks
        recorder = Recorder(kube, "kubelet", lambda: datetime.datetime.now(datetime.UTC))
        notices = Notices(recorder)
        broke = host.supervisor.objects_of("kubelet")
        nodes, services = Mirror(kube, NODES, broke=broke), Mirror(kube, SERVICES)
        devices = Devices(
            directory,
            tasks,
            # Lambdas, because `beats` and `keeper` need the devices and are made after them.
            changed=lambda node: beats.post_again(node),
            name_of=lambda uid: pod.key if (pod := keeper.get(uid)) else None,
            supervisor=host.supervisor,
        )
        beats = Heartbeats(settings, kube, nodes, recorder, devices.counts, broke)
        keeper = Pods(settings, kube, notices, devices, self._runtime_of, time.time)
        keeper.broke = broke
        starter = Starter(
            settings=settings,
            launches=launches,
            notices=notices,
            storage=Storage(Objects(kube), directory, settings.host_paths),
            node_of=self._nodes.__getitem__,
            service_variables=lambda namespace: service_variables(services, namespace, host.api),
            object_of=keeper.object_of,
            devices=ContainerDevices(
                devices,
                settings.hooks,
                directory,
                (PACKAGE, *settings.packages),
                settings.host_paths,
            ),
            hosted=host.hosted,
            sockets=host.sockets,
            pace=Pace(),
        )
        execs = ExecProcesses(launches)
        processes = ProcessRuntime(
            settings, notices, launches, execs, starter, tasks, keeper.look_at, {}, {}
        )
        launches.exited = host.hosted.exited = processes.exited
        keeper.runtimes |= {
            PROCESS: processes,
            TIMER: TimerRuntime(notices, processes.remove_traces, settings.names),
        }
        return _Live(
            nodes=nodes,
            pods=PodFeed(kube, keeper, broke),
            namespaces=Mirror(kube, NAMESPACES),
            services=services,
            recorder=recorder,
            beats=beats,
            keeper=keeper,
            devices=devices,
            processes=processes,
            streams=PodStreams(keeper.get, keeper.object_of, processes, Gate()),
            tasks=tasks,
            supervisor=host.supervisor,
        )

    async def _follow(self, live: _Live) -> None:
        """Waits for the nodes before it watches pods, so that the node of every pod is known. Only
        when all pods are known, it removes what pods of an earlier run have left."""
        live.keep("events", live.recorder.run)
        for mirror in (live.nodes, live.namespaces, live.services):
            live.keep(mirror.resource.plural, mirror.run)
            await mirror.wait_synced()
        live.nodes.on_change(self._node_changed)
        live.keep("pods", live.pods.run)
        await live.pods.wait_synced()
        live.devices.release_all_but(lambda uid: live.keeper.get(uid) is not None)
        await live.processes.sweep(lambda uid: live.keeper.get(uid) is not None)
        await sweep_storage(live.processes.starter.storage, self._nodes)

    def _start_workers(self, live: _Live) -> None:
        live.keep("pod-timers", live.keeper.timers.run)
        live.keep("node-timers", live.beats.timers.run)
        live.keep("volumes", live.processes.refresh)
        live.keep("usage", UsageWatch(live.processes, live.keeper.evict).run)
        for number in range(self._settings.writers):
            live.keep(f"pod-worker-{number}", live.keeper.keep)
        for number in range(_HEARTBEAT_WORKERS):
            live.keep(f"node-worker-{number}", live.beats.keep)

    def _runtime_of(self, obj: Obj, node: LocalNode) -> str:
        """The runtime that the pod names, else its namespace, its node, or the settings."""
        assert self._live is not None
        namespace = self._live.namespaces.get(obj["metadata"]["namespace"]) or {"metadata": {}}
        for metadata in (obj["metadata"], namespace["metadata"]):
            said = (metadata.get("annotations") or {}).get(self._settings.names.runtime_annotation)
            if said in (TIMER, PROCESS):
                return str(said)
        return node.runtime if node.runtime in (TIMER, PROCESS) else self._settings.runtime

    def _is_ours(self, node: Obj) -> bool:
        return self._settings.names.node_label in (node["metadata"].get("labels") or {})

    def _node_changed(self, old: Obj | None, new: Obj | None) -> None:
        assert self._live is not None
        beats, keeper = self._live.beats, self._live.keeper
        name = (new or old or {})["metadata"]["name"]
        node = self._nodes.get(name)
        # Another uid under the same name: the node was deleted and created again. What ran on the
        # old node must not go on under the new one.
        gone = (
            new is None or not self._is_ours(new) or (node and node.uid != new["metadata"]["uid"])
        )
        if node is not None and gone:
            self._remove_node(self._live, node)
            node = None
        if new is None or not self._is_ours(new):
            return
        if node is None:
            try:
                self._add_node(self._live, node_from(new, self._settings.names))
            except Exception:
                # The cause may pass, as a full disk does, and nothing else would change the node.
                again = partial(self._add_again, self._live, name)
                asyncio.get_running_loop().call_later(_ADD_AGAIN_S, again)
                raise
            return
        was_stopped = node.stopped
        refresh(node, new, self._settings.names)
        if was_stopped and not node.stopped:
            beats.post_again(name)
            keeper.resume_node(name)

    def _add_again(self, live: _Live, name: str) -> None:
        if self._live is live and name not in self._nodes:
            live.nodes.tell_again(name)

    def _add_node(self, live: _Live, node: LocalNode) -> None:
        # First, because it may fail: then the node is not ours yet, and is tried again.
        if self._settings.hooks.node_added(node.name, node.instance_type):
            live.devices.add(node.name)
        self._nodes[node.name] = node
        live.beats.add(node)
        live.keeper.add_node(node)

    def _remove_node(self, live: _Live, node: LocalNode) -> None:
        del self._nodes[node.name]
        live.beats.remove(node.name)
        live.keeper.remove_node(node.name)
        live.devices.remove(node.name)
        for path in set_aside(self._settings.directory, node.name):
            add_task(live.tasks, asyncio.to_thread(remove_tree, path), "node-clear")


async def _api_address(kube: Kube) -> tuple[str, int]:
    """Where processes reach the API server: its cluster IP leads nowhere."""
    try:
        endpoints = await kube.get(ENDPOINTS, "kubernetes", "default")
    except NotFound:
        return _API_HOST, _API_PORT
    for subset in endpoints.get("subsets") or ():
        for port in subset.get("ports") or ():
            return _API_HOST, int(port["port"])
    return _API_HOST, _API_PORT
