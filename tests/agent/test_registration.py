"""Registration with a kubelet that answers badly: the agent tries again, less and less often."""

import asyncio
import contextlib
import itertools
import logging
import socket
from pathlib import Path

import pytest

from gpupool.agent import registration
from gpupool.agent.plugin import ResourcePlugin
from gpupool.agent.registration import is_listened_to, keep_registered
from kubeclient.kubeletapi.errors import RpcFailed


def test_pauses_double_up_to_half_a_minute() -> None:
    assert list(itertools.islice(registration._pauses_s(), 7)) == [1, 2, 4, 8, 16, 30, 30]


async def test_a_failed_registration_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "kubelet.sock").touch()
    tries: list[Path] = []
    second = asyncio.Event()

    async def fails(_plugin: ResourcePlugin, directory: Path, _kubelet: tuple[int, int]) -> None:
        tries.append(directory)
        if len(tries) == 2:
            second.set()
            await asyncio.Event().wait()
        raise RpcFailed("Unavailable", "the kubelet starts")

    monkeypatch.setattr(registration, "_serve_one_kubelet", fails)
    monkeypatch.setattr(registration, "_pauses_s", lambda: itertools.repeat(0.0))
    plugin = ResourcePlugin("nvidia.com/gpu")
    monkeypatch.setattr(plugin, "wait_wanted", lambda: asyncio.sleep(0))
    with caplog.at_level(logging.WARNING):
        task = asyncio.create_task(keep_registered(plugin, tmp_path))
        async with asyncio.timeout(60):
            await second.wait()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    # Of this module alone: what earlier tests have left running may warn of something else.
    said = [each.message for each in caplog.records if each.name == registration.__name__]
    assert said == ["device plugin not registered, trying again"]


async def test_a_kubelet_that_does_not_follow_the_devices_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registration, "_LONGEST_ALONE_S", 0.0)
    with pytest.raises(RpcFailed, match="does not follow our devices"):
        await registration._while_followed(ResourcePlugin("nvidia.com/gpu"), lambda: True)


def test_a_socket_whose_queue_is_full_is_listened_to(tmp_path: Path) -> None:
    path = tmp_path / "s.sock"
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.socket(socket.AF_UNIX))
        server.bind(str(path))
        assert not is_listened_to(path)
        server.listen(0)
        for _ in range(3):  # nobody accepts: soon the queue is full
            probe = stack.enter_context(socket.socket(socket.AF_UNIX))
            probe.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                probe.connect(str(path))
        assert is_listened_to(path)
