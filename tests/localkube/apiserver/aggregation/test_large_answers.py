"""Answers of other API servers that are large, or break off."""

import asyncio

import pytest

from kubeclient.errors import NoAnswer
from localkube.apiserver.request import Answer, Stream
from localkube.apiserver.security.identities import ADMIN
from tests.localkube.apiserver.aggregation.other_server import PIECE
from tests.localkube.apiserver.aggregation.test_aggregation import World, available, world

__all__ = ["world"]
_HUGE = "/apis/example.com/v1/huge"
_PIECES = 64 * 16  # 64 MiB


async def test_a_large_answer_is_passed_on_and_not_held(world: World) -> None:
    await available(world)
    reply = await world.send(f"{_HUGE}?pieces={_PIECES}")
    assert isinstance(reply, Stream)
    size, chunks = 0, aiter(reply.chunks)
    size += len(await anext(chunks))
    await asyncio.sleep(0.1)  # time to read on, if somebody would
    assert world.other.sent < _PIECES * len(PIECE) / 2
    async for chunk in chunks:
        size += len(chunk)
    assert size == _PIECES * len(PIECE)


async def test_a_small_answer_is_one_piece(world: World) -> None:
    await available(world)
    reply = await world.send(f"{_HUGE}?pieces=3")
    assert isinstance(reply, Answer)
    assert reply.body == PIECE * 3


async def test_a_large_answer_that_breaks_off_breaks_the_connection(world: World) -> None:
    await available(world)
    reply = await world.send(f"{_HUGE}?pieces=64&promised={1 << 30}")
    assert isinstance(reply, Stream)
    with pytest.raises(ConnectionResetError):
        async for _ in reply.chunks:
            pass


async def test_a_small_answer_that_breaks_off_is_unavailable(world: World) -> None:
    await available(world)
    reply = await world.send(f"{_HUGE}?pieces=1&promised={1 << 30}")
    assert isinstance(reply, Answer)
    assert reply.status == 503


async def test_programs_of_the_cluster_read_large_answers_up_to_a_limit(world: World) -> None:
    await available(world)
    kube = world.server.client(ADMIN)
    with pytest.raises(NoAnswer, match="not JSON"):  # it was read to its end
        await kube.page(f"{_HUGE}?pieces=32")
    with pytest.raises(NoAnswer, match="larger than"):
        await kube.page(f"{_HUGE}?pieces={_PIECES + 16}")
    with pytest.raises(NoAnswer, match="broke off"):
        await kube.page(f"{_HUGE}?pieces=64&promised={1 << 30}")
