"""What all cards have used in the last minutes, from the history: for maps with many nodes."""

import asyncio
from collections.abc import Mapping

import pytest

from gpupool.console.gpu_views import overview
from gpupool.console.pages.map_heat import heat_of
from gpupool.console.recent_use import RecentUse
from gpupool.core.readings import CardReading
from gpupool.engine.cluster import ClusterModel
from gpupool.history.database import NoHistory
from gpupool.history.pages import History
from gpupool.history.reader import Points, Sums
from gpupool.history.samples import Sample
from gpupool.history.series import Kind, Series
from tests.console.test_gpus import card, node


class Told:
    """A history of these cards."""

    def __init__(self, cards: Mapping[str, Sample] | None) -> None:
        self.cards = cards  # None: there is no history
        self.asked = 0
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def sums(
        self, kind: Kind, since_s: float, until_s: float | None = None, prefix: str = ""
    ) -> Sums:
        assert kind is Kind.CARD
        self.asked += 1
        await self.may_answer.wait()
        if self.cards is None:
            raise NoHistory("none")
        of = tuple((Series(Kind.CARD, name, 0, 0), each) for name, each in self.cards.items())
        return Sums(0, 60, of)

    async def points(self, *_: object) -> Points:
        raise NotImplementedError


def recent(history: History | None) -> tuple[RecentUse, list[float], list[str]]:
    now, changes = [0.0], list[str]()
    ask = None if history is None else lambda: history
    return RecentUse(ask, lambda: now[0], lambda: changes.append("late")), now, changes


async def test_the_mean_is_taken_over_the_time_of_which_agents_told() -> None:
    told = Told(
        {
            "GPU-a": Sample(seen=60_000, told=30_000, memory_used=90_000),
            "GPU-b": Sample(seen=60_000, told=60_000),
            "GPU-c": Sample(seen=60_000),
        }
    )
    use, now, _ = recent(told)
    found = await use.cards()
    assert {uuid: each.memory_used_mib for uuid, each in found.items()} == {
        "GPU-a": 3000,
        "GPU-b": 0,
    }, "of the third one nobody told: unknown is not 0"
    await use.cards()
    assert told.asked == 1
    now[0] += 31
    await use.cards()
    assert told.asked == 2


async def test_without_a_history_nothing_is_known() -> None:
    assert await recent(None)[0].cards() == {}
    use, _, _ = recent(Told(None))
    assert await use.cards() == {}


async def test_a_slow_history_holds_no_page_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpupool.console.recent_use._WITHIN_S", 0.0)
    told = Told({"GPU-a": Sample(seen=1000, told=1000, memory_used=5)})
    told.may_answer.clear()
    use, now, changes = recent(told)
    assert await use.cards() == {}
    assert await use.cards() == {}
    assert told.asked <= 1, "one question at a time"
    now[0] += 1
    told.may_answer.set()
    async with asyncio.timeout(60):
        while not changes:  # noqa: ASYNC110
            await asyncio.sleep(0)
    assert (await use.cards())["GPU-a"].memory_used_mib == 5


async def test_a_question_ends_with_the_visitor() -> None:
    told = Told({})
    told.may_answer.clear()
    use, _, _ = recent(told)
    asking = asyncio.create_task(use.cards())
    async with asyncio.timeout(60):
        while not told.asked:  # noqa: ASYNC110
            await asyncio.sleep(0)
    await use.end()
    assert await asking == {}


class Asker:
    """As much of a Visit as the heat view asks of it."""

    query: Mapping[str, str] = {"colour": "use"}

    async def readings(self, nodes: frozenset[str]) -> dict[str, CardReading]:
        return {"of agents": CardReading("of agents", len(nodes))}

    async def recent_use(self) -> dict[str, CardReading]:
        return {"of the history": CardReading("of the history", 1)}


@pytest.mark.parametrize(("nodes", "where"), [(64, "of agents"), (65, "of the history")])
async def test_the_heat_view_of_many_nodes_asks_the_history(nodes: int, where: str) -> None:
    cluster = ClusterModel()
    for number in range(nodes):
        cluster.set_node(node(f"n{number}", card(0)))
    heat, _ = await heat_of(Asker(), overview(cluster))  # type: ignore[arg-type]  # all it uses
    assert list(heat.readings) == [where]
