"""Registers a device plugin with the kubelet, and again whenever the kubelet restarts.

A kubelet that starts removes every socket in the directory and creates its own again. That is the
only sign of a restart, so the kubelet's socket is compared once a second. Each registration listens
on a socket with a new name. During an update the next agent can then register before this one has
ended, and the kubelet never sees the node without the resource.
"""

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

from gpupool.agent.plugin import ResourcePlugin
from kubeclient.kubeletapi.calling import channel_to
from kubeclient.kubeletapi.errors import RpcFailed
from kubeclient.kubeletapi.messages import API_VERSION, DevicePluginOptions, RegisterRequest
from kubeclient.kubeletapi.serving import device_plugin_service, serving

log = logging.getLogger(__name__)

KUBELET_SOCKET = "kubelet.sock"
_OURS = "gpupool-"
_LOOK_S = 1.0  # between checks whether the kubelet has restarted
_LONGEST_PAUSE_S = 30.0
_LONGEST_ALONE_S = 30.0  # without an open ListAndWatch stream: then we register again


async def keep_registered(plugin: ResourcePlugin, directory: Path) -> None:
    """Keeps the plugin registered while it has something to offer. Raises BadSocketPath."""
    pauses = _pauses_s()
    while True:
        await plugin.wait_wanted()
        # Taken before we register: if the kubelet restarts in between, its socket differs from this
        # one, and we register again.
        kubelet = await _wait_for_kubelet(directory / KUBELET_SOCKET)
        try:
            await _serve_one_kubelet(plugin, directory, kubelet)
            pauses = _pauses_s()
        except RpcFailed as error:
            pause_s = next(pauses)
            log.warning(
                "device plugin not registered, trying again",
                extra={"resource": plugin.resource, "error": str(error), "pause_s": pause_s},
            )
            await asyncio.sleep(pause_s)


async def _serve_one_kubelet(
    plugin: ResourcePlugin, directory: Path, kubelet: tuple[int, int]
) -> None:
    """Returns when the kubelet has restarted or we withdraw. Raises RpcFailed."""
    own = directory / _socket_name(plugin.resource)
    async with serving(own, [device_plugin_service(plugin)]):
        async with channel_to(own) as ourselves:
            await (
                ourselves.options()
            )  # the kubelet connects at once when we register: we must answer
        async with channel_to(directory / KUBELET_SOCKET) as channel:
            options = DevicePluginOptions()
            await channel.register(RegisterRequest(API_VERSION, own.name, plugin.resource, options))
        log.info("device plugin registered", extra={"resource": plugin.resource})
        try:
            await _while_followed(
                plugin, lambda: plugin.is_wanted and _is_there(directory, kubelet, own)
            )
        finally:
            plugin.leave()


async def _while_followed(plugin: ResourcePlugin, is_there: Callable[[], bool]) -> None:
    alone_s = 0.0
    while is_there():
        alone_s = 0.0 if plugin.followers else alone_s + _LOOK_S
        if alone_s > _LONGEST_ALONE_S:
            # An error and not a plain return, so that `keep_registered` waits longer before each
            # new try.
            raise RpcFailed("Unavailable", "the kubelet does not follow our devices")
        await asyncio.sleep(_LOOK_S)


def _is_there(directory: Path, kubelet: tuple[int, int], own: Path) -> bool:
    # A starting kubelet removes our socket as well, perhaps before it creates its own.
    return identity(directory / KUBELET_SOCKET) == kubelet and identity(own) is not None


def _socket_name(resource: str) -> str:
    """Kept short: a socket's whole path may have 107 bytes."""
    return f"{_OURS}{resource.rpartition('/')[2][:8]}-{os.urandom(4).hex()}.sock"


async def _wait_for_kubelet(path: Path) -> tuple[int, int]:
    while True:
        if found := identity(path):
            return found
        await asyncio.sleep(_LOOK_S)


def identity(path: Path) -> tuple[int, int] | None:
    """Inode and change time: they differ when the file was removed and created again."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    # The inode alone is not enough: file systems give a freed inode number to the next file.
    return found.st_ino, found.st_ctime_ns


def remove_left_sockets(directory: Path) -> None:
    """Removes sockets of agents that were killed: those on which nobody listens."""
    for path in directory.glob(f"{_OURS}*.sock"):
        if not is_listened_to(path):
            path.unlink(missing_ok=True)


def is_listened_to(path: Path) -> bool:
    """Whether there is a socket that somebody serves. Never waits."""
    if not path.exists():
        return False
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:  # its backlog is full, or we may not connect: somebody listens
            return True
    return True


def _pauses_s() -> Iterator[float]:
    pause_s = 1.0
    while True:
        yield pause_s
        pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
