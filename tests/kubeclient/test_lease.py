"""Leader election: one candidate works, and stops when it is not sure to be the leader."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from kubeclient.client import Kube
from kubeclient.errors import NoAnswer
from kubeclient.lease import Candidacy, Leadership, LeaseKey, Term
from kubeclient.resources import LEASES
from tests.kubeclient.api import api


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


LEASE = LeaseKey("kube-system", "test", "example.com/serves", "example.com/wanted-by")


class Worker:
    """Records when it works. It polls often, so that tests are quick."""

    def __init__(
        self, kube: Kube, name: str, clock: Clock, *serves: str, goes_first: bool = False
    ) -> None:
        candidacy = Candidacy(LEASE, name, frozenset(serves), goes_first, retry_s=0.001)
        self.leadership = Leadership(kube, candidacy, clock)
        self.terms: list[Term] = []
        self.working = asyncio.Event()
        self.stopped = asyncio.Event()
        self.stopped.set()

    async def work(self, term: Term) -> None:
        self.terms.append(term)
        self.working.set()
        self.stopped.clear()
        try:
            await asyncio.Event().wait()
        finally:
            self.working.clear()
            self.stopped.set()


@contextlib.asynccontextmanager
async def running(*workers: Worker) -> AsyncIterator[list[asyncio.Task[None]]]:
    tasks = [asyncio.create_task(worker.leadership.run(worker.work)) for worker in workers]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def holder(kube: Kube) -> str:
    lease = await kube.get(LEASES, "test", "kube-system")
    return str(lease["spec"].get("holderIdentity") or "")


async def soon(event: asyncio.Event) -> None:
    await asyncio.wait_for(event.wait(), 60)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.001)


async def test_one_candidate_leads_and_hands_over_when_it_ends(tmp_path: Path) -> None:
    async with api(tmp_path) as kube:
        clock = Clock()
        one, other = Worker(kube, "one", clock), Worker(kube, "other", clock)
        async with running(one) as [first]:
            await soon(one.working)
            assert await holder(kube) == "one"
            async with running(other):
                assert not other.leadership.is_sure()
                first.cancel()
                await soon(other.working)  # at once: no clock has moved
                assert one.stopped.is_set()
                assert await holder(kube) == "other"


async def test_a_leader_that_cannot_renew_stops_before_another_begins(tmp_path: Path) -> None:
    async with api(tmp_path) as kube:
        clock = Clock()
        one, other = Worker(kube, "one", clock), Worker(kube, "other", clock)
        async with running(one):
            await soon(one.working)
            one.leadership._kube = Kube(Unreachable())
            async with running(other):
                clock.now_s += 9.9
                await asyncio.sleep(0.02)
                assert one.working.is_set()
                clock.now_s += 0.2
                await soon(one.stopped)
                assert not other.working.is_set()
                await asyncio.sleep(0.02)
                clock.now_s += 15.1
                await soon(other.working)
        assert (len(one.terms), len(other.terms)) == (1, 1)


async def test_a_leader_that_was_frozen_is_not_sure_on_waking(tmp_path: Path) -> None:
    async with api(tmp_path) as kube:
        clock = Clock()
        one = Worker(kube, "one", clock)
        async with running(one):
            await soon(one.working)
            assert one.leadership.is_sure()
            clock.now_s += 60
            assert not one.leadership.is_sure()


async def test_a_leader_begins_a_new_term_if_another_held_the_lease_in_between(
    tmp_path: Path,
) -> None:
    async with api(tmp_path) as kube:
        clock = Clock()
        one, other = Worker(kube, "one", clock), Worker(kube, "other", clock)
        async with running(one):
            await soon(one.working)
            way = one.leadership._kube
            one.leadership._kube = Kube(Unreachable())
            async with running(other):
                await asyncio.sleep(0.02)
                clock.now_s += 15.1
                await soon(other.working)
            assert await holder(kube) == ""
            one.leadership._kube = way
            await until(lambda: len(one.terms) == 2)
        assert not one.terms[1].inherits  # the other has handed over


class LosesAnAnswer:
    """To the first write that takes the Lease."""

    def __init__(self, kube: Kube, identity: str) -> None:
        self._inner = kube._transport
        self._taking = f'"holderIdentity":"{identity}"'.encode()
        self.lost = False

    async def call(self, method: str, path: str, **given: Any) -> tuple[int, bytes]:
        answer = await self._inner.call(method, path, **given)
        if method == "PUT" and self._taking in given["body"] and not self.lost:
            self.lost = True
            raise NoAnswer("lost")
        return answer

    def stream(self, path: str, **given: Any) -> AsyncGenerator[bytes, None]:
        return self._inner.stream(path, **given)


async def test_a_lost_answer_hides_no_names_of_the_leader_before(tmp_path: Path) -> None:
    async with api(tmp_path) as kube:
        clock, way = Clock(), LosesAnAnswer(kube, "other")
        one, other = Worker(kube, "one", clock, "a"), Worker(Kube(way), "other", clock, "b")
        async with running(one):
            await soon(one.working)
            one.leadership._kube = Kube(Unreachable())
            async with running(other):
                await until(lambda: other.leadership.holder == "one")
                clock.now_s += 15.1
                await soon(other.working)
        assert way.lost
        assert other.terms[0].inherits
        assert "a" in other.terms[0].served_before


async def test_a_term_after_an_unclean_failover_inherits(
    tmp_path: Path,
) -> None:
    async with api(tmp_path) as kube:
        clock = Clock()
        one, other = Worker(kube, "one", clock, "a"), Worker(kube, "other", clock, "b")
        async with running(one):
            await soon(one.working)
            one.leadership._kube = Kube(Unreachable())
            async with running(other):
                await asyncio.sleep(0.02)
                clock.now_s += 15.1
                await soon(other.working)
        assert [term.inherits for term in one.terms + other.terms] == [False, True]
        assert "a" in other.terms[0].served_before


async def test_a_leader_with_unanswered_requests_does_not_hand_over(tmp_path: Path) -> None:
    async with api(tmp_path) as kube:
        one = Worker(kube, "one", Clock())
        task = asyncio.create_task(one.leadership.run(one.work, lambda: False))
        await soon(one.working)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert await holder(kube) == "one"


async def test_the_leader_serves_the_names_of_all_candidates(tmp_path: Path) -> None:
    async with api(tmp_path) as kube:
        clock = Clock()
        one, other = Worker(kube, "one", clock, "a"), Worker(kube, "other", clock, "b", "c")
        async with running(one) as [first]:
            await soon(one.working)
            async with running(other):
                await until(lambda: len(one.terms) == 2)
                assert one.terms[1].serves == {"a", "b", "c"}
                assert not one.terms[1].inherits
                first.cancel()
                await soon(other.working)
                assert other.terms[0].serves == {"b", "c"}  # no candidate asks for "a" now


async def test_the_leader_hands_over_to_a_candidate_that_goes_first(tmp_path: Path) -> None:
    async with api(tmp_path) as kube:
        clock = Clock()
        others = [Worker(kube, name, clock, name) for name in ("one", "two")]
        first = Worker(kube, "first", clock, goes_first=True)
        async with running(*others):
            await until(lambda: any(worker.working.is_set() for worker in others))
            async with running(first):
                await soon(first.working)  # no clock has moved
                assert not any(worker.working.is_set() for worker in others)
                await until(lambda: first.terms[-1].serves == {"one", "two"})
            await until(lambda: any(worker.working.is_set() for worker in others))


async def test_a_preferred_candidate_that_is_gone_does_not_block_the_lease(tmp_path: Path) -> None:
    async with api(tmp_path) as kube:
        clock = Clock()
        one, other = Worker(kube, "one", clock), Worker(kube, "other", clock)
        async with running(one):
            await soon(one.working)
            lease = await kube.get(LEASES, "test", "kube-system")
            lease["metadata"]["annotations"][LEASE.wanted_by_annotation] = "gone"
            await kube.update(LEASES, lease)
            await soon(one.stopped)
            async with running(other):
                assert not one.working.is_set()

                def leads_in_time() -> bool:
                    clock.now_s += 1.0  # silence counts from when a candidate has looked
                    return one.working.is_set() or other.working.is_set()

                await until(leads_in_time)


async def test_an_error_of_the_work_is_raised(tmp_path: Path) -> None:
    async def broken(_: Term) -> None:
        raise RuntimeError("broken")

    async with api(tmp_path) as kube:
        leadership = Worker(kube, "one", Clock()).leadership
        with pytest.raises(RuntimeError, match="broken"):
            await leadership.run(broken)
        assert await holder(kube) == ""


class Unreachable:
    async def call(self, *_: object, **__: object) -> tuple[int, bytes]:
        raise NoAnswer("cut off")

    def stream(self, *_: object, **__: object) -> AsyncGenerator[bytes, None]:
        raise NoAnswer("cut off")
