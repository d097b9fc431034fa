"""What cards do now: a page does not wait for an agent that is slow."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from gpupool.console import read_cards
from gpupool.console.read_cards import READINGS, ReadCards
from gpupool.console.sight import Sight
from gpupool.core.readings import CardReading, NodeReadings
from gpupool.readings import Readings

NODE = frozenset({"n1"})


class Agents:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.asked = 0
        self.namespace = ""
        self.may_answer = asyncio.Event()

    async def read(self, _: object, nodes: frozenset[str], namespace: str) -> Readings:
        self.asked += 1
        self.namespace = namespace
        await self.may_answer.wait()
        return Readings(
            {name: NodeReadings(name, 0, (CardReading("GPU-0", 7),)) for name in nodes}, {}
        )


def run(
    monkeypatch: pytest.MonkeyPatch,
    story: Callable[[Agents, ReadCards, list[str], list[float]], Coroutine[Any, Any, None]],
) -> None:
    async def begin() -> None:
        agents, now = Agents(), [0.0]
        said: list[str] = []
        monkeypatch.setattr(read_cards, "read_nodes", agents.read)
        monkeypatch.setattr(read_cards, "_WITHIN_S", 0.0)
        cards = ReadCards(None, lambda: now[0], said.append)  # type: ignore[arg-type]
        await story(agents, cards, said, now)
        await cards.end()

    asyncio.run(begin())


async def settled(cards: ReadCards) -> None:
    await asyncio.gather(*cards._asking.values())


def test_a_slow_agent_makes_the_page_again_when_it_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(agents: Agents, cards: ReadCards, said: list[str], now: list[float]) -> None:
        assert await cards.of(NODE) == {}
        assert await cards.of(NODE) == {}
        assert agents.asked == 1, "it is asked once, however many pages want to know"
        now[0] = 2.0
        agents.may_answer.set()
        await settled(cards)
        assert said == [READINGS]
        assert (await cards.of(NODE))["GPU-0"].memory_used_mib == 7
        assert agents.asked == 1

    run(monkeypatch, story)


def test_what_is_known_is_shown_while_newer_readings_are_on_their_way_but_not_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(agents: Agents, cards: ReadCards, said: list[str], now: list[float]) -> None:
        agents.may_answer.set()
        await cards.of(NODE)
        await settled(cards)
        agents.may_answer.clear()
        now[0] = 10.0
        assert "GPU-0" in await cards.of(NODE)
        assert agents.asked == 2
        now[0] = 60.0
        assert await cards.of(NODE) == {}, "old readings are unknown, not the present"

    run(monkeypatch, story)


def test_an_end_while_agents_are_asked_leaves_nothing_running(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(agents: Agents, cards: ReadCards, said: list[str], now: list[float]) -> None:
        await cards.of(NODE)
        await cards.end()
        assert not cards._asking

    run(monkeypatch, story)


def test_agents_are_asked_where_the_console_was_told_that_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(agents: Agents, cards: ReadCards, said: list[str], now: list[float]) -> None:
        agents.may_answer.set()
        await cards.of(NODE)
        await settled(cards)
        assert agents.namespace == "kube-system"
        sight = Sight(None, None, lambda: 0.0, agents="gpus")  # type: ignore[arg-type]
        await sight.cards.of(NODE)
        await settled(sight.cards)
        assert agents.namespace == "gpus"

    run(monkeypatch, story)
