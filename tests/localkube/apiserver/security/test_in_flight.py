from collections.abc import AsyncIterator
from typing import cast

import pytest

from localkube.apiserver.request import Answer, Stream, Upgrade, WebSocket
from localkube.apiserver.security.in_flight import InFlight
from localkube.apiserver.security.limits import Limits
from localkube.apiserver.status import ApiError

LIMITS = Limits(mutations=2, watches=4, watches_per_user=2, streams=1, followed_logs=1)


async def _chunks(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


def _stream(*chunks: bytes) -> Stream:
    return Stream(_chunks(*chunks))


def test_too_many_writes_are_told_to_come_back() -> None:
    in_flight = InFlight(LIMITS)
    with in_flight.mutations, in_flight.mutations:
        with pytest.raises(ApiError) as refusal, in_flight.mutations:
            pass
        assert (refusal.value.code, refusal.value.reason) == (429, "TooManyRequests")
        assert refusal.value.headers == (("Retry-After", "1"),)
    with in_flight.mutations:
        pass
    assert in_flight.mutations.count == 0


def test_a_write_that_fails_gives_its_place_back() -> None:
    in_flight = InFlight(LIMITS)
    for _ in range(5):
        with pytest.raises(ValueError, match="x"), in_flight.mutations:
            raise ValueError("x")


def test_a_user_may_have_only_so_many_watches() -> None:
    in_flight = InFlight(LIMITS)
    taken = [in_flight.watch("a"), in_flight.watch("a")]
    with pytest.raises(ApiError, match="2 watches of one user"):
        in_flight.watch("a")
    taken += [in_flight.watch("b"), in_flight.watch("b")]
    with pytest.raises(ApiError, match="4 watches at a time"):
        in_flight.watch("c")
    for slot in taken:
        slot.release()
        slot.release()  # the second time counts for nothing
    assert in_flight._watches.count == 0
    assert not in_flight._watches._by_user
    assert not in_flight._watches._by_party


def test_nobody_takes_more_than_half_not_even_with_many_service_accounts() -> None:
    in_flight = InFlight(Limits(streams=4))
    accounts = [f"system:serviceaccount:tenant:a{number}" for number in range(3)]
    taken = [in_flight.stream(account) for account in accounts[:2]]
    with pytest.raises(ApiError, match="2 exec, attach and port-forward streams of one user or"):
        in_flight.stream(accounts[2])
    taken += [in_flight.stream("kubernetes-admin"), in_flight.stream("system:serviceaccount:b:a0")]
    for slot in taken:
        slot.release()
    assert not in_flight._streams._by_party


async def test_a_stream_holds_its_place_to_its_end() -> None:
    in_flight = InFlight(LIMITS)
    with in_flight.followed_log("a") as slot:
        reply = slot.hold(_stream(b"1", b"2"))
    assert isinstance(reply, Stream)
    assert in_flight._logs.count == 1
    assert [chunk async for chunk in reply.chunks] == [b"1", b"2"]
    assert in_flight._logs.count == 0


async def test_a_stream_that_is_closed_early_gives_its_place_back() -> None:
    in_flight = InFlight(LIMITS)
    for read_first in (True, False):
        inner = _chunks(b"1", b"2")
        with in_flight.followed_log("a") as slot:
            reply = slot.hold(Stream(inner))
        assert isinstance(reply, Stream)
        if read_first:
            await anext(reply.chunks)
        await reply.chunks.aclose()  # type: ignore[attr-defined]
        assert in_flight._logs.count == 0
        with pytest.raises(StopAsyncIteration):
            await anext(inner)


def test_a_stream_that_is_forgotten_gives_its_place_back() -> None:
    in_flight = InFlight(LIMITS)
    with in_flight.followed_log("a") as slot:
        reply = slot.hold(_stream())
    assert in_flight._logs.count == 1
    del reply, slot
    assert in_flight._logs.count == 0


def test_a_refused_watch_gives_its_place_back() -> None:
    in_flight = InFlight(LIMITS)
    with pytest.raises(ValueError, match="x"), in_flight.watch("a"):
        raise ValueError("x")
    with in_flight.watch("a") as slot:
        slot.hold(Answer(410))
    assert in_flight._watches.count == 0


async def test_a_websocket_counts_while_it_runs() -> None:
    in_flight = InFlight(LIMITS)
    seen = []

    async def run(socket: WebSocket) -> None:
        seen.append(in_flight._streams.count)

    with in_flight.stream("a") as slot:
        reply = slot.hold(Upgrade(("v5.channel.k8s.io",), run))
    assert in_flight._streams.count == 0  # the handshake may yet fail
    assert isinstance(reply, Upgrade)
    await reply.run(cast(WebSocket, None))
    assert (seen, in_flight._streams.count) == ([1], 0)


def test_the_limits_are_those_that_are_documented() -> None:
    limits = Limits()
    assert (limits.wire.body_bytes, limits.object_bytes) == (3 * 2**20, 3 * 2**19)
    assert (limits.watches, limits.watches_per_user, limits.streams) == (500, 100, 128)
