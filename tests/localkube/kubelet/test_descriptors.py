"""Pipes whose other end is in the hands of somebody hostile."""

import asyncio
import contextlib
import os
from pathlib import Path

import pytest

from localkube.kubelet import process_table
from localkube.kubelet.descriptors import Reader
from tests.localkube.kubelet.world import is_ready, shell, world


async def test_the_rest_of_a_pipe_is_bounded_when_somebody_goes_on_writing() -> None:
    reading, writing = os.pipe()
    taken = 0

    def refill(data: bytes) -> None:
        nonlocal taken
        taken += len(data)
        assert taken < 10**8, "it never ends"
        os.write(writing, data)

    reader = Reader(reading, refill)
    os.write(writing, b"x" * 60_000)
    reader.drain()
    os.close(writing)
    assert taken >= 60_000


async def test_all_that_a_program_left_in_its_pipe_is_read() -> None:
    reading, writing = os.pipe()
    said = bytearray()
    reader = Reader(reading, said.extend)
    os.set_blocking(writing, False)
    size = 0
    with contextlib.suppress(BlockingIOError):  # once it is full
        while True:
            size += os.write(writing, b"x" * 4096)
    reader.drain()
    os.close(writing)
    assert len(said) == size


async def test_a_probe_whose_children_print_without_end_stops_nobody(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        probe = {
            "exec": {"command": ["sh", "-c", "yes & exit 0"]},
            "periodSeconds": 1,
            "timeoutSeconds": 5,
        }
        await here.create(shell("p", "sleep 1000", container={"readinessProbe": probe}))
        async with asyncio.timeout(25):
            await here.until("p", is_ready)
            await here.run(shell("q", "sleep 1000"))


def test_a_child_that_cannot_be_looked_for_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_more_descriptors(*_: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(Path, "read_bytes", no_more_descriptors)
    monkeypatch.setattr(os, "listdir", no_more_descriptors)
    assert process_table.only_child(os.getpid()) == os.getpid()
