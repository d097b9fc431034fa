"""Asking agents for readings: whoever does not answer is unknown, and delays nobody."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from gpupool import readings
from gpupool.contract.readings import readings_text
from gpupool.core.readings import CardReading, NodeReadings
from gpupool.readings import read_nodes
from kubeclient.client import Kube, Listing, WebSocket
from kubeclient.errors import KubeError, NoAnswer, refusal
from kubeclient.objects import Obj

ANSWERED = NodeReadings("n", 1.0, (CardReading("GPU-a", 7),))


def http(body: str, status: int = 200) -> bytes:
    return f"HTTP/1.0 {status} X\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


class Socket:
    def __init__(self, answer: bytes | None) -> None:
        self._messages = [b"\x00\xe5\x24", b"\x01\xe5\x24"]
        self._messages += [] if answer is None else [b"\x00" + answer]
        self._hangs = answer is None

    async def send(self, message: bytes) -> None: ...

    async def receive(self) -> bytes | None:
        if self._messages:
            return self._messages.pop(0)
        if self._hangs:
            await asyncio.Event().wait()
        return None


Answer = Callable[[str], bytes | None]  # of the pod with this name; None: it hangs


class Agents:
    """Stands in for the client: agents by node, and what each of them answers."""

    def __init__(self, pods: list[Obj] | KubeError, answer: Answer) -> None:
        self.pods = pods
        self.answer = answer
        self.asked: list[str] = []
        self.listed: list[tuple[str, Any]] = []
        self.open = self.most_open = 0

    async def list(self, _: object, namespace: str, *, query: dict[str, str]) -> Listing:
        self.listed.append((namespace, query))
        if isinstance(self.pods, KubeError):
            raise self.pods
        return Listing(self.pods, "1")

    @contextlib.asynccontextmanager
    async def websocket(self, path: str, **_: object) -> AsyncIterator[WebSocket]:
        name = path.split("/")[-2]
        self.asked.append(name)
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            yield Socket(self.answer(name))
        finally:
            self.open -= 1

    async def read(self, *nodes: str) -> readings.Readings:
        kube: Kube = self  # type: ignore[assignment]  # the methods that are called
        return await read_nodes(kube, nodes, "agents")


def agent(node: str = "n", *, ready: str = "True", port: str = "readings", **metadata: str) -> Obj:
    ports = [{"name": port, "containerPort": 9445}]
    return {
        "metadata": {"name": f"agent-{node}", "namespace": "agents", **metadata},
        "spec": {"nodeName": node, "containers": [{"name": "agent", "ports": ports}]},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }


def answers(body: str, status: int = 200) -> Answer:
    return lambda _: http(body, status)


async def test_an_agent_that_answers_is_believed() -> None:
    agents = Agents([agent()], answers(readings_text(ANSWERED)))
    assert await agents.read("n") == readings.Readings({"n": ANSWERED}, {})
    [(namespace, query)] = agents.listed
    assert namespace == "agents"
    assert query == {
        "labelSelector": "name=gpushare-device-plugin-ds",
        "fieldSelector": "spec.nodeName=n",
    }


@pytest.mark.parametrize(
    ("pods", "answer", "said"),
    [
        ([], answers(""), "no agent runs on it"),
        ([agent("other")], answers(""), "no agent runs on it"),
        ([agent(ready="False")], answers(""), "its agent is not ready"),
        ([agent(port="http")], answers(""), 'its agent has no port "readings"'),
        ([agent()], answers("no driver\n", 503), "its agent has no readings: no driver"),
        ([agent()], answers("", 404), "its agent has no readings: HTTP 404"),
        ([agent()], answers("\x1b[31m!" + "x" * 999, 500), r"no readings: \[31m!xxx.*xxx\.\.\.$"),
        ([agent()], answers("{}"), "cannot be read: Object missing required field `version`"),
        (
            [agent()],
            answers(readings_text(NodeReadings("m", 1.0, ()))),
            "its agent answered for another node, m",
        ),
        ([agent()], lambda _: b"SSH-2.0\r\n\r\n", "what answers is no HTTP server"),
        (NoAnswer("nothing answers"), answers(""), "agents could not be listed: nothing answers"),
    ],
)
async def test_a_node_without_readings_has_a_reason(
    pods: list[Obj] | KubeError, answer: Answer, said: str
) -> None:
    found = await Agents(pods, answer).read("n")
    assert found.by_node == {}
    with pytest.raises(AssertionError, match=said):
        raise AssertionError(found.problems["n"])


async def test_one_that_hangs_does_not_delay_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readings, "ANSWER_LIMIT_S", 0.05)
    nodes = [f"n{number}" for number in range(200)]

    def answer(pod: str) -> bytes | None:
        node = pod.removeprefix("agent-")
        return None if node == "n0" else http(readings_text(NodeReadings(node, 1.0, ())))

    agents = Agents([agent(node) for node in nodes], answer)
    found = await agents.read(*nodes)
    assert set(found.by_node) == set(nodes) - {"n0"}
    assert "did not answer in" in found.problems["n0"]
    assert 1 < agents.most_open <= 32


async def test_hundreds_that_hang_keep_nobody_waiting_for_minutes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(readings, "ANSWER_LIMIT_S", 0.05)
    nodes = [f"n{number}" for number in range(200)]
    agents = Agents([agent(node) for node in nodes], lambda _: None)
    kube: Kube = agents  # type: ignore[assignment]  # the methods that are called
    found = await read_nodes(kube, nodes, "agents", limit_s=0.01)
    assert set(found.problems) == set(nodes)
    assert len(agents.asked) <= 32  # as many as are asked at the same time, and no others
    not_asked = [why for why in found.problems.values() if "was not asked" in why]
    assert len(not_asked) == 200 - len(agents.asked)


async def test_a_server_that_has_too_much_to_do_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(readings, "_PAUSE_S", 0.0)
    times = iter(range(3))

    def answer(_: str) -> bytes:
        if next(times) < 2:
            raise refusal(429, b"")
        return http(readings_text(ANSWERED))

    assert (await Agents([agent()], answer).read("n")).by_node == {"n": ANSWERED}


async def test_who_may_not_ask_is_told_which_right_is_missing_and_asks_few() -> None:
    def answer(_: str) -> bytes:
        raise refusal(403, b"")

    nodes = [f"n{number}" for number in range(200)]
    agents = Agents([agent(node) for node in nodes], answer)
    found = await agents.read(*nodes)
    [why] = set(found.problems.values())
    assert "get and create pods/portforward in namespace agents" in why
    assert len(found.problems) == 200
    assert len(agents.asked) <= 32


async def test_other_refusals_are_named_by_their_code() -> None:
    def answer(_: str) -> bytes:
        raise refusal(502, b"")

    found = await Agents([agent()], answer).read("n")
    assert found.problems["n"] == "the API server does not lead to its agent: HTTP 502"


async def test_of_two_agents_the_one_that_stays_is_asked() -> None:
    old, new = agent(deletionTimestamp="now"), agent(name="agent-new")
    ends = agent(ready="False")
    for pods in ([old, new, ends], [new, ends, old], [ends, old, new]):
        agents = Agents(pods, answers(readings_text(ANSWERED)))
        await agents.read("n")
        assert agents.asked == ["agent-new"]


def test_an_agent_that_tells_of_cards_of_others_is_not_believed() -> None:
    def told(name: str, **memory: int) -> NodeReadings:
        cards = [CardReading(f"GPU-{uuid}", used) for uuid, used in memory.items()]
        return NodeReadings(name, 1.0, tuple(cards))

    read = readings.Readings({"n": told("n", a=7), "liar": told("liar", b=1, a=9, c=3)}, {})
    owned = {"n": {"GPU-a"}, "liar": {"GPU-b"}, "silent": {"GPU-c"}}
    assert {uuid: card.memory_used_mib for uuid, card in read.cards(owned).items()} == {
        "GPU-a": 7,
        "GPU-b": 1,
    }
    # Who does not know whose a card is believes neither of two.
    assert set(read.cards()) == {"GPU-b", "GPU-c"}
