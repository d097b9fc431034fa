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


LEASE = LeaseKey(
    "kube-system",
    "test",
    "example.com/serves",
    "example.com/served-before",
    "example.com/wanted-by",
)


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


async def leads_after_silence(worker: Worker, clock: Clock) -> None:
    """Not one long step of the clock: the last renewal of another may still arrive."""
    leadership = worker.leadership

    def leads() -> bool:
        if leadership.holder != leadership._as.identity:
            clock.now_s += 0.1
        return worker.working.is_set()

    await until(leads)


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
                await until(lambda: other.leadership.holder == "one")
                assert one.working.is_set()
                clock.now_s += 0.2
                await soon(one.stopped)
                assert not other.working.is_set()
                await leads_after_silence(other, clock)
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
                await leads_after_silence(other, clock)
            assert await holder(kube) == ""
            one.leadership._kube = way
            await until(lambda: len(one.terms) == 2)
        assert not one.terms[1].inherits  # the other has handed over


class OnTaking:
    """Does something, once, when the write has arrived by which a candidate takes the Lease."""

    def __init__(self, kube: Kube, identity: str, then: Callable[[], None]) -> None:
        self._inner = kube._transport
        self._taking = f'"holderIdentity":"{identity}"'.encode()
        self._then = then
        self.taken = False

    async def call(self, method: str, path: str, **given: Any) -> tuple[int, bytes]:
        answer = await self._inner.call(method, path, **given)
        if method == "PUT" and self._taking in given["body"] and not self.taken:
            self.taken = True
            self._then()
        return answer

    def stream(self, path: str, **given: Any) -> AsyncGenerator[bytes, None]:
        return self._inner.stream(path, **given)


def lose_the_answer() -> None:
    raise NoAnswer("lost")


async def terms_after_a_lost_leader(
    kube: Kube, clock: Clock, on_taking: Callable[[], None]
) -> list[Term]:
    """Of `other` with the name b, when `one` with the name a cannot be reached any more."""
    way = OnTaking(kube, "other", on_taking)
    one, other = Worker(kube, "one", clock, "a"), Worker(Kube(way), "other", clock, "b")
    async with running(one):
        await soon(one.working)
        one.leadership._kube = Kube(Unreachable())
        async with running(other):
            await leads_after_silence(other, clock)
    assert way.taken
    assert [term.inherits for term in one.terms] == [False]
    return other.terms


async def test_a_term_after_an_unclean_failover_inherits(tmp_path: Path) -> None:
    async with api(tmp_path) as kube:
        [term] = await terms_after_a_lost_leader(kube, Clock(), lambda: None)
        assert term.inherits
        assert "a" in term.served_before


async def test_a_lost_answer_hides_no_names_of_the_leader_before(tmp_path: Path) -> None:
    async with api(tmp_path) as kube:
        [term] = await terms_after_a_lost_leader(kube, Clock(), lose_the_answer)
        assert term.inherits
        assert "a" in term.served_before


async def test_a_late_answer_hides_no_names_of_the_leader_before(tmp_path: Path) -> None:
    """The first term is over when the answer comes: its work has never begun."""
    clock = Clock()

    def wait_long() -> None:
        clock.now_s += 10.1

    async with api(tmp_path) as kube:
        [term] = await terms_after_a_lost_leader(kube, clock, wait_long)
        assert term.inherits
        assert "a" in term.served_before


async def test_two_unclean_failovers_hide_no_names(tmp_path: Path) -> None:
    async with api(tmp_path) as kube, contextlib.AsyncExitStack() as stack:
        clock = Clock()
        for name in ("a", "b", "c"):
            worker = Worker(kube, name, clock, name)
            await stack.enter_async_context(running(worker))
            await leads_after_silence(worker, clock)
            worker.leadership._kube = Kube(Unreachable())
        assert worker.terms[0].inherits
        assert {"a", "b"} <= worker.terms[0].served_before


async def test_a_clean_handover_forgets_the_names_of_lost_leaders(tmp_path: Path) -> None:
    async with api(tmp_path) as kube:
        clock = Clock()
        await terms_after_a_lost_leader(kube, clock, lambda: None)
        third = Worker(kube, "third", clock, "c")
        async with running(third):
            await soon(third.working)
        assert not third.terms[0].inherits
        assert third.terms[0].served_before == frozenset()


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
