"""A plugin's life beside a kubelet: listen, register, and begin again when the kubelet does.

A kubelet that starts removes every socket of the directory and makes its own anew; that is how one
sees it. Every start listens on a socket of a new name, so that the next agent can take over before
this one has left: the resource does not vanish in between.
"""

import asyncio
import logging
import os
import secrets
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
_LOOK_S = 1.0  # for another kubelet
_LONGEST_PAUSE_S = 30.0
_LONGEST_ALONE_S = 30.0  # without a kubelet that follows our list


async def keep_registered(plugin: ResourcePlugin, directory: Path) -> None:
    """While it has something to offer, until cancelled. Raises BadSocketPath."""
    pauses = _pauses_s()
    while True:
        await plugin.wait_wanted()
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
    """Returns when it has gone, has removed our socket, or we withdraw. Raises RpcFailed."""
    own = directory / _socket_name(plugin.resource)
    async with serving(own, [device_plugin_service(plugin)]):
        async with channel_to(own) as ourselves:
            await ourselves.options()  # whoever registers must be there
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
            raise RpcFailed("Unavailable", "the kubelet does not follow our devices")
        await asyncio.sleep(_LOOK_S)


def _is_there(directory: Path, kubelet: tuple[int, int], own: Path) -> bool:
    return identity(directory / KUBELET_SOCKET) == kubelet and identity(own) is not None


def _socket_name(resource: str) -> str:
    """Short: the kernel takes 107 bytes for the whole path."""
    return f"{_OURS}{resource.rpartition('/')[2][:8]}-{secrets.token_hex(4)}.sock"


async def _wait_for_kubelet(path: Path) -> tuple[int, int]:
    while True:
        if found := identity(path):
            return found
        await asyncio.sleep(_LOOK_S)


def identity(path: Path) -> tuple[int, int] | None:
    """Another one when the file was made anew."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_ctime_ns


def remove_left_sockets(directory: Path) -> None:
    """Of agents that were killed; nobody listens there."""
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
        except OSError:  # he is busy, or it is not for us to know
            return True
    return True


def _pauses_s() -> Iterator[float]:
    pause_s = 1.0
    while True:
        yield pause_s
        pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
