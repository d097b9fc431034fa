"""Puts cards into containers, as a plugin of the container runtime (NRI).

For nodes where nothing else does it: there, NVIDIA_VISIBLE_DEVICES means nothing, and no runtime
class brings the driver. The runtime asks before it makes a container. Which cards it gets is in the
allocation, which came with the Binding; what a card needs is in the node's CDI files.

A runtime whose plugin is gone makes the container without it. So Allocate gives every GPU container
of such a node a mount that cannot be made (`HELD_BACK`), and only here it is taken away again: a
container that was not asked about does not start, and its user reads why.

Where others put cards in, it only looks whether they did, before a program starts
(`start_check.py`).
"""

import logging
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Protocol

from gpupool.agent.start_check import StartCheck
from gpupool.agent.wall_plan import Shares, shares_of
from gpupool.agent.walls import WallRefused
from gpupool.contract.allocation import BadAllocation, allocation_of
from gpupool.contract.names import (
    ANNOTATION_ALLOCATION,
    ENV_VISIBLE_DEVICES,
    GROUP_LIMITS,
    HELD_BACK,
)
from gpupool.core.gpu import ContainerGpus, Isolation
from gpupool.hardware import cdi
from kubeclient.kubeletapi.messages import Mount
from kubeclient.nri import messages as nri
from kubeclient.nri.plugin import Refused

log = logging.getLogger(__name__)

_TAKE_AWAY = nri.Mount(f"-{HELD_BACK}")
_BIND = ("rbind", "rprivate")
_CREATE = nri.Event.CREATE_CONTAINER


class DriverWall(Protocol):
    """The driver's own memory limits; does nothing where it has none."""

    async def hold(self, container: str, shares: Shares) -> None:
        """Raises WallRefused."""

    async def release(self, container: str, shares: Shares) -> None: ...


@dataclass(frozen=True, slots=True)
class Injector:
    """Implements `kubeclient.nri.plugin.Plugin`."""

    node: str
    specs: cdi.Specs
    limiter: Callable[[], tuple[Mount, ...]]  # what an isolated container gets of the limiter
    wall: DriverWall
    told: Callable[[bool], None]  # whether the runtime asks us; called at every change
    named: Callable[[str], None] = lambda runtime: None  # told the name of the runtime
    starts: StartCheck | None = None  # None: the node's processes cannot be seen
    puts_in: bool = True  # False: only others do

    @property
    def events(self) -> Collection[nri.Event]:
        return [event for event in nri.Event if self.puts_in or event is not _CREATE]

    def configured(self, runtime: str, version: str) -> None:
        self.named(runtime)

    async def synchronized(self) -> None:
        # Containers that run have what they need: those that missed us do not run.
        self.told(True)

    async def create(
        self, pod: nri.PodSandbox, container: nri.Container
    ) -> nri.ContainerAdjustment | None:
        """Raises Refused."""
        if not any(mount.destination == HELD_BACK for mount in container.mounts):
            return None  # the kubelet has given it no device of ours
        gpus = self._gpus(pod, container)
        edits = cdi.Edits()
        for share in gpus.shares:
            edits += self._edits(share.uuid)
        mounts = self.limiter() if gpus.isolation is Isolation.LIMIT else ()
        if gpus.isolation is Isolation.LIMIT and not mounts:
            raise Refused(
                f"container {gpus.container} is promised isolation, and the limiter is not "
                f"installed on node {self.node}"
            )
        return adjustment(edits, mounts)

    async def start(self, pod: nri.PodSandbox, container: nri.Container) -> None:
        """Sets the driver's limit: the cgroup is there, and no program runs in it yet. Raises
        Refused, also if others should have put a card in, and did not."""
        if words := await self._missing(pod, container):
            raise Refused(words)
        shares = _shares(pod, container)
        if not shares:
            return
        try:
            await self.wall.hold(container.id, shares)
        except WallRefused as error:
            raise Refused(
                f"container {container.name} is promised isolation by the driver, which does not "
                f"hold it on node {self.node}: {error}"
            ) from error

    async def _missing(self, pod: nri.PodSandbox, container: nri.Container) -> str:
        if self.starts is None:
            return ""
        try:
            return await self.starts.refusal(pod, container)
        except Exception:
            # A mistake of ours must not keep all containers of the node from starting.
            log.exception("a start was not checked")
            return ""

    async def removed(self, pod: nri.PodSandbox, container: nri.Container) -> None:
        if shares := _shares(pod, container):
            await self.wall.release(container.id, shares)

    def _gpus(self, pod: nri.PodSandbox, container: nri.Container) -> ContainerGpus:
        whose = f"pod {pod.namespace}/{pod.name}, container {container.name}"
        try:
            found = allocation_of(pod.annotations.get(ANNOTATION_ALLOCATION, ""))
        except BadAllocation as error:
            raise Refused(
                f"{whose}: gpupool on node {self.node} cannot read its allocation: {error}. "
                "Was it bound by another scheduler?"
            ) from error
        for gpus in found.containers:
            if gpus.container == container.name:
                return gpus
        raise Refused(
            f"{whose}: the allocation of the pod has no card for it, although the kubelet of node "
            f"{self.node} has given it one"
        )

    def _edits(self, uuid: str) -> cdi.Edits:
        try:
            found = self.specs.edits(uuid)
        except OSError as error:
            raise Refused(f"node {self.node}, CDI device {uuid}: {error}") from error
        if found is None:
            places = ", ".join(map(str, self.specs.directories))
            wrong = "".join(f"; {text}" for text in self.specs.wrong[:3])
            raise Refused(
                f"node {self.node} has no CDI device {uuid} in {places}{wrong}. "
                "`nvidia-ctk cdi generate` writes one"
            )
        return found


def _shares(pod: nri.PodSandbox, container: nri.Container) -> Shares:
    """As they were when the pod was started. After a resize, the agent's next sweep corrects it."""
    return shares_of(pod.annotations.get(f"{GROUP_LIMITS}/{container.name}", ""))


def adjustment(edits: cdi.Edits, mounts: tuple[Mount, ...] = ()) -> nri.ContainerAdjustment:
    return nri.ContainerAdjustment(
        mounts=(_TAKE_AWAY, *_cdi_mounts(edits), *map(_limiter_mount, mounts)),
        env=tuple(_variables(edits)),
        hooks=_hooks(edits) if edits.hooks else None,
        linux=nri.LinuxContainerAdjustment(tuple(map(_device, edits.device_nodes))),
    )


def _cdi_mounts(edits: cdi.Edits) -> Iterator[nri.Mount]:
    for mount in edits.mounts:
        kind = mount.type or "bind"
        yield nri.Mount(mount.container_path, kind, mount.host_path, mount.options or _BIND)


def _limiter_mount(mount: Mount) -> nri.Mount:
    options = (*_BIND, "ro") if mount.read_only else (*_BIND, "rw")
    return nri.Mount(mount.container_path, "bind", mount.host_path, options)


def _variables(edits: cdi.Edits) -> Iterator[nri.KeyValue]:
    for variable in edits.env:
        name, _, value = variable.partition("=")
        # nvidia-ctk sets it to `void`, so that NVIDIA's runtime does nothing. Programs read from it
        # which cards they have.
        if name != ENV_VISIBLE_DEVICES:
            yield nri.KeyValue(name, value)


def _hooks(edits: cdi.Edits) -> nri.Hooks:
    def of(name: str) -> tuple[nri.Hook, ...]:
        return tuple(_hook(hook) for hook in edits.hooks if hook.hook_name == name)

    return nri.Hooks(
        prestart=of("prestart"),
        create_runtime=of("createRuntime"),
        create_container=of("createContainer"),
        start_container=of("startContainer"),
        poststart=of("poststart"),
        poststop=of("poststop"),
    )


def _hook(hook: cdi.Hook) -> nri.Hook:
    timeout = None if hook.timeout is None else nri.OptionalNumber(hook.timeout)
    return nri.Hook(hook.path, hook.args, hook.env, timeout)


def _device(node: cdi.DeviceNode) -> nri.LinuxDevice:
    def optional(value: int | None) -> nri.OptionalNumber | None:
        return None if value is None else nri.OptionalNumber(value)

    return nri.LinuxDevice(
        node.path,
        node.type,
        node.major,
        node.minor,
        optional(node.file_mode),
        optional(node.uid),
        optional(node.gid),
    )
