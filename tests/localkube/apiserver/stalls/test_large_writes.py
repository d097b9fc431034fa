"""Many large writes at once: few of them are in memory, and nobody waits for somebody else's."""

import asyncio

import pytest

from bench.heavy.bodies import CONFIGMAPS, DRY, MERGE, Heavy, map_body
from localkube.apiserver import large_writes
from localkube.apiserver.admission.attributes import Attributes
from localkube.apiserver.admission.chain import Admission
from localkube.apiserver.large_writes import LargeWrites
from localkube.apiserver.status import ApiError
from tests.localkube.apiserver.stalls.watched import Watched

_MANY = 12
_DATA = {f"k{number}": "" for number in range(5_000)}


class _Counting:
    """How many writes are in admission at the same time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.most = self._now = 0
        mutate = Admission.mutate

        async def counted(admission: Admission, attributes: Attributes) -> Attributes:
            self._now += 1
            self.most = max(self.most, self._now)
            try:
                await asyncio.sleep(0.01)  # as a webhook would
                return await mutate(admission, attributes)
            finally:
                self._now -= 1

        monkeypatch.setattr(Admission, "mutate", counted)


async def _all(watched: Watched, heavy: Heavy) -> list[int]:
    answers = await asyncio.gather(*(watched.call(heavy) for _ in range(_MANY)))
    return [status for status, _ in answers]


async def test_of_one_users_large_bodies_two_are_worked_on_at_a_time(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting = _Counting(monkeypatch)
    statuses = await _all(watched, Heavy("POST", f"{CONFIGMAPS}{DRY}", map_body(data=_DATA)))
    assert statuses == [201] * _MANY
    assert counting.most == 2


async def test_small_changes_of_a_large_object_are_large_too(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    await watched.make(CONFIGMAPS, map_body(data=_DATA))
    counting = _Counting(monkeypatch)
    change = Heavy("PATCH", f"{CONFIGMAPS}/heavy{DRY}", b'{"data":{"a":"b"}}', MERGE)
    assert await _all(watched, change) == [200] * _MANY
    assert counting.most == 2


async def test_small_writes_do_not_wait_for_one_another(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting = _Counting(monkeypatch)
    await _all(watched, Heavy("POST", f"{CONFIGMAPS}{DRY}", map_body(data={"a": "b"})))
    assert counting.most == _MANY


async def test_too_many_are_told_to_come_back_and_users_do_not_wait_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(large_writes, "OF_ALL", 3)
    monkeypatch.setattr(large_writes, "MOST_WAITING", 1)
    writes, done = LargeWrites(), asyncio.Event()
    began: asyncio.Queue[str] = asyncio.Queue()

    async def write(user: str) -> None:
        async with writes.turn(user):
            began.put_nowait(user)
            await done.wait()

    tasks = [asyncio.ensure_future(write("a")) for _ in range(3)]
    assert [await began.get(), await began.get()] == ["a", "a"]
    with pytest.raises(ApiError, match="1 large requests of this user wait already"):
        await write("a")
    tasks.append(asyncio.ensure_future(write("b")))
    assert await began.get() == "b"
    with pytest.raises(ApiError, match="3 large requests are worked on"):
        await write("c")
    done.set()
    await asyncio.gather(*tasks)
    await write("c")


async def test_the_service_accounts_of_a_namespace_have_their_places_together() -> None:
    writes, done = LargeWrites(), asyncio.Event()
    began: asyncio.Queue[str] = asyncio.Queue()

    async def write(user: str) -> None:
        async with writes.turn(user):
            began.put_nowait(user)
            await done.wait()

    accounts = [f"system:serviceaccount:tenant:a{number}" for number in range(20)]
    tasks = [asyncio.ensure_future(write(account)) for account in accounts]
    tasks.append(asyncio.ensure_future(write("kubernetes-admin")))
    assert [await began.get() for _ in range(3)] == [*accounts[:2], "kubernetes-admin"]
    assert began.empty()
    done.set()
    await asyncio.gather(*tasks)
    assert not writes._lines


async def test_a_read_with_a_large_body_takes_no_place(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may wait for hours: for the first line of a log."""
    monkeypatch.setattr(large_writes, "OF_ALL", 0)
    body = map_body(data=_DATA)
    assert (await watched.call(Heavy("POST", f"{CONFIGMAPS}{DRY}", body)))[0] == 429
    assert (await watched.call(Heavy("GET", CONFIGMAPS, body)))[0] == 200
