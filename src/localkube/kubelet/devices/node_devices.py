"""The devices of one node: plugins register at its kubelet.sock, and pods get devices from them.

This is what a kubelet does, with one difference: a pod that requests devices of a plugin that is
away (it was restarted, or the kubelet was) waits until the plugin is back, for as long as the
kubelet keeps the capacity. The real kubelet fails the pod."""

import asyncio
import contextlib
import logging
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from kubeclient.kubeletapi.calling import Channel, channel_to
from kubeclient.kubeletapi.errors import KubeletApiError, Refusal
from kubeclient.kubeletapi.messages import (
    API_VERSION,
    HEALTHY,
    AllocateRequest,
    ContainerAllocateRequest,
    ContainerAllocateResponse,
    ContainerPreferredAllocationRequest,
    DevicePluginOptions,
    PreferredAllocationRequest,
    PreStartContainerRequest,
    RegisterRequest,
)
from kubeclient.kubeletapi.serving import pod_resources_service, registration_service, serving
from localkube.kubelet.devices import checkpoint
from localkube.kubelet.devices.grants import (
    CannotAllocate,
    DeviceRequest,
    Grant,
    Grants,
    NameOf,
    allocatable_devices,
    available,
    chosen,
    held_devices,
    merged,
)
from localkube.kubelet.devices.stock import GRACE_S, Counts, Stock
from localkube.new_tasks import add_task

_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_RESOURCE = re.compile(
    rf"(?=.{{1,244}}/){_LABEL}(\.{_LABEL})*/([A-Za-z0-9][-A-Za-z0-9_.]{{0,61}})?[A-Za-z0-9]"
)
_ENDPOINT = re.compile(r"[A-Za-z0-9_][-A-Za-z0-9_.]{0,254}")


def problem_of(request: RegisterRequest) -> str | None:
    """Why the registration is refused, in the kubelet's words."""
    if request.version != API_VERSION:
        return (
            f'requested API version "{request.version}" is not supported by kubelet. '
            f'Supported version is ["{API_VERSION}"]'
        )
    if not is_extended(request.resource_name):
        return f'the ResourceName "{request.resource_name}" is invalid'
    if not _ENDPOINT.fullmatch(request.endpoint):
        return f'the Endpoint "{request.endpoint}" is not the name of a file beside kubelet.sock'
    return None


def is_extended(resource: str) -> bool:
    """Whether it is an extended resource: with a domain that is not Kubernetes' own."""
    domain = resource.partition("/")[0]
    return (
        _RESOURCE.fullmatch(resource) is not None
        and not domain.endswith("kubernetes.io")
        and not resource.startswith("requests.")
    )


log = logging.getLogger(__name__)

SOCKET = "kubelet.sock"
# A pod with a hostPath can be a plugin, too. Each resource is an entry in the node's status.
_MOST_RESOURCES = 64
_MOST_PLUGINS = 2 * _MOST_RESOURCES  # the old ones and the new ones that take over
_REQUEST_BYTES = 16 * 1024  # of registrations, and of questions about pods


class SocketDirectories(NamedTuple):
    """The directories of a node's sockets."""

    plugins: Path
    pod_resources: Path


class Plugin(NamedTuple):
    channel: Channel
    options: DevicePluginOptions
    follower: asyncio.Task[object]  # who listens to it


class NotYet(Exception):
    """The plugin is away, and may come back."""


class NodeDevices:
    def __init__(
        self, directories: SocketDirectories, changed: Callable[[], None], name_of: NameOf
    ) -> None:
        """`changed` is called when the counts may have changed."""
        self._directory = directories.plugins
        self._resources_directory = directories.pod_resources
        self._changed = changed
        self._name_of = name_of
        self._stock = Stock()
        self._grants = Grants()
        self._plugins: dict[tuple[str, str], Plugin] = {}  # by resource and socket
        self._connecting: set[asyncio.Future[str]] = set()  # plugins that have not answered yet
        self._turn = (
            asyncio.Lock()
        )  # one pod at a time: a choice and its grant must not be interleaved
        self._tasks: asyncio.TaskGroup | None = None
        grants, resources = checkpoint.read(self._directory)
        # Whatever the file says, a plugin has extended resources only, and a node so many of them.
        for grant in grants:
            if is_extended(grant.resource):
                self._grants.add(grant)
        for resource in [each for each in resources if is_extended(each)][:_MOST_RESOURCES]:
            self._stock.remember(resource, time.monotonic())

    async def run(self) -> None:
        """Takes registrations until cancelled. Deletes old sockets first: plugins watch for a new
        kubelet.sock, which tells them to register again."""
        for path in self._directory.iterdir():
            if stat.S_ISSOCK(path.lstat().st_mode):
                path.unlink()
        own = [registration_service(self.register)]
        kubelet = serving(self._directory / SOCKET, own, _REQUEST_BYTES)
        told = pod_resources_service(
            lambda: held_devices(self._grants, self._name_of),
            lambda: allocatable_devices(self._stock.ids()),
        )
        teller = serving(self._resources_directory / SOCKET, [told], _REQUEST_BYTES)
        try:
            # kubelet.sock last: plugins register as soon as they see it, and a registration needs
            # the tasks.
            async with asyncio.TaskGroup() as self._tasks, teller, kubelet:
                await asyncio.sleep(GRACE_S)  # for plugins from before a restart
                self._expire()
                await asyncio.Event().wait()
        finally:
            self._tasks = None

    def counts(self) -> Counts:
        return self._stock.counts()

    def manages(self, resource: str) -> bool:
        return self._stock.has(resource)

    async def register(self, request: RegisterRequest) -> None:
        """Returns when the plugin has been called back. Raises Refusal."""
        assert self._tasks is not None
        if problem := problem_of(request):
            raise Refusal(problem)
        coming = len(self._connecting)
        is_new = not self._stock.has(request.resource_name)
        if is_new and len(self._stock) + coming >= _MOST_RESOURCES:
            raise Refusal(f"the plugins of this node have {_MOST_RESOURCES} resources already")
        if len(self._plugins) + coming >= _MOST_PLUGINS:
            raise Refusal(f"this node has {_MOST_PLUGINS} plugins already")
        ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._connecting.add(ready)
        ready.add_done_callback(self._connecting.discard)
        add_task(self._tasks, self._follow(request, ready), "device-plugin")
        # Whoever hangs up meanwhile has a connection nevertheless, until the plugin's time is over.
        if problem := await asyncio.shield(ready):
            raise Refusal(problem)

    async def admit(self, pod: str, requests: Iterable[DeviceRequest]) -> str | None:
        """Allocates the pod's devices, and returns None; or returns why not, in the kubelet's
        words. Raises NotYet. On any failure, the pod keeps the grants that it had before."""
        async with self._turn:
            before = self._grants.of_pod(pod)
            try:
                reusable: dict[str, set[str]] = {}
                for request in requests:
                    for resource, needed in request.limits.items():
                        if self._stock.has(resource) or _find(before, request.container, resource):
                            await self._give(pod, request, resource, needed, reusable)
            except CannotAllocate as no:
                self._grants.keep(pod, before)
                return f"Allocate failed due to {no}, which is unexpected"
            except BaseException:
                self._grants.keep(pod, before)
                raise
            if self._grants.of_pod(pod) != before:
                self._save()
            return None

    def release(self, pod: str) -> None:
        if self._grants.release(pod):
            self._save()

    def release_all_but(self, pods: Callable[[str], bool]) -> None:
        """Releases the devices of pods that were deleted while the kubelet was down."""
        for pod in self._grants.pods():
            if not pods(pod):
                self.release(pod)

    def response(self, pod: str, container: str) -> ContainerAllocateResponse:
        """The plugins' answers for the container: variables, mounts and devices."""
        return merged(self._grants.of_container(pod, container))

    async def pre_start(self, pod: str, container: str) -> None:
        """Before every start of the container, for plugins that want it. Raises RpcFailed."""
        for grant in self._grants.of_container(pod, container):
            plugin = self._plugin(grant.resource)
            if plugin is not None and plugin.options.pre_start_required:
                await plugin.channel.pre_start_container(PreStartContainerRequest(grant.ids))

    async def _give(
        self,
        pod: str,
        request: DeviceRequest,
        resource: str,
        needed: int,
        reusable: dict[str, set[str]],
    ) -> None:
        grant = _find(self._grants.of_pod(pod), request.container, resource)
        if grant is None:
            grant = await self._grant(pod, request.container, resource, needed, reusable)
            self._grants.add(grant)
        elif len(grant.ids) != needed:
            raise CannotAllocate(
                f'pod "{pod}" container "{request.container}" changed request for resource '
                f'"{resource}" from {len(grant.ids)} to {needed}'
            )
        free_again = reusable.setdefault(resource, set())
        if request.gives_back:
            free_again.update(grant.ids)
        else:
            free_again.difference_update(grant.ids)

    async def _grant(
        self, pod: str, container: str, resource: str, needed: int, reusable: dict[str, set[str]]
    ) -> Grant:
        if self._stock.is_away(resource):
            raise NotYet
        plugin = self._plugin(resource)
        if plugin is None:
            raise CannotAllocate(f"unknown Device Plugin {resource}")
        again = chosen(needed, (), reusable.get(resource, ()))
        more = needed - len(again)
        healthy = self._stock.healthy(resource)
        free = available(resource, healthy, self._grants.in_use(resource), more)
        try:
            first = await _preferred(plugin, again, free, needed) if more else ()
            ids = again + chosen(more, first, free)
            request = AllocateRequest((ContainerAllocateRequest(ids),))
            answer = await plugin.channel.allocate(request)
        except KubeletApiError as error:
            raise CannotAllocate(str(error)) from error
        if not answer.containers:
            raise CannotAllocate(f"no containers return in allocation response {answer}")
        return Grant(pod, container, resource, ids, answer.containers[0])

    def _plugin(self, resource: str) -> Plugin | None:
        if not self._stock.has(resource):
            return None
        return self._plugins.get((resource, self._stock.source(resource)))

    async def _follow(self, request: RegisterRequest, ready: asyncio.Future[str]) -> None:
        """Follows one plugin, from its registration to its end."""
        resource, socket = request.resource_name, request.endpoint
        key = resource, socket
        try:
            async with channel_to(self._directory / socket) as channel:
                plugin = Plugin(channel, await channel.options(), _this_task())
                with self._connected(key, plugin):
                    # Before the first list: a plugin may send it only after its call of Register
                    # has returned.
                    _answer(ready, "")
                    async for answer in channel.list_and_watch():
                        listed = [
                            (device.id, device.health == HEALTHY) for device in answer.devices
                        ]
                        if self._stock.listed(resource, socket, listed):
                            self._save()
                            self._changed()
        except KubeletApiError as error:
            _answer(ready, f"failed to connect to device plugin {socket}: {error}")
            log.info("device plugin has gone", extra={"resource": resource, "error": str(error)})
        except Exception:  # a bug about one plugin must not stop a node
            _answer(ready, "internal error of the kubelet")
            log.exception("device plugin not followed", extra={"resource": resource})

    @contextlib.contextmanager
    def _connected(self, key: tuple[str, str], plugin: Plugin) -> Iterator[None]:
        """Kubernetes 1.35 takes whoever registered last, also at the same socket. (Later versions
        refuse him while they listen to the other.) The other is not listened to any more: plugins
        that register again and again must not add up."""
        resource, socket = key
        if before := self._plugins.get(key):
            before.follower.cancel()
        self._plugins[key] = plugin
        self._stock.register(resource, socket)
        try:
            yield
        finally:
            is_last = self._plugins.get(key) is plugin
            if is_last:
                del self._plugins[key]
            if is_last and self._stock.ended(resource, socket, time.monotonic()):
                self._changed()
                asyncio.get_running_loop().call_later(GRACE_S, self._expire)

    def _expire(self) -> None:
        if self._tasks is not None and self._stock.expire(time.monotonic()):
            self._save()
            self._changed()

    def _save(self) -> None:
        try:
            checkpoint.write(self._directory, self._grants, self._stock.ids())
        except OSError as error:
            log.error("checkpoint of devices not written", extra={"error": str(error)})


def _this_task() -> asyncio.Task[object]:
    task = asyncio.current_task()
    assert task is not None
    return task


async def _preferred(
    plugin: Plugin, again: tuple[str, ...], free: Iterable[str], needed: int
) -> tuple[str, ...]:
    """The devices that the plugin prefers, if it has an opinion."""
    if not plugin.options.preferred_allocation_available:
        return ()
    ids = tuple(sorted({*free, *again}))
    request = ContainerPreferredAllocationRequest(ids, again, needed)
    answer = await plugin.channel.preferred_allocation(PreferredAllocationRequest((request,)))
    return answer.containers[0].device_ids if answer.containers else ()


def _find(grants: Iterable[Grant], container: str, resource: str) -> Grant | None:
    return next((g for g in grants if (g.container, g.resource) == (container, resource)), None)


def _answer(ready: asyncio.Future[str], problem: str) -> None:
    if not ready.done():  # the plugin may have hung up
        ready.set_result(problem)
