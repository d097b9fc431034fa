"""Asks the agents of nodes for readings of their cards, on demand, through the API server.

The way is port-forward: client, API server, kubelet, loopback interface of the agent's pod. So
Kubernetes decides who may ask, and the agents listen on no network. Many nodes are asked at the
same time, and each has a time limit: one that does not answer does not delay the others. All of
them together have one, too: hundreds of silent nodes must not keep a person waiting.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass

from gpupool.contract.names import AGENT_DAEMON_SET, AGENT_NAMESPACE, AGENT_PORT_NAME
from gpupool.contract.readings import MOST_BYTES, PATH, BadReadings, readings_of
from gpupool.core.readings import CardReading, NodeReadings
from kubeclient.client import Kube
from kubeclient.errors import KubeError, Refused, TooMany
from kubeclient.objects import Obj
from kubeclient.port_forward import named_port, page_of_pod
from kubeclient.resources import PODS

ANSWER_LIMIT_S = 5.0  # of one node
PATIENCE_S = 15.0  # of a person who waits for all nodes
# Each is a connection of its own to the API server. More at a time would not be faster.
_AT_A_TIME = 32
_PAUSE_S = 0.2  # after an answer of "too many"
_LONGEST_WORDS = 200


@dataclass(frozen=True, slots=True)
class Readings:
    """Each node that was asked for is in one of the two."""

    by_node: dict[str, NodeReadings]
    problems: dict[str, str]  # why nothing is known of a node
    unasked: frozenset[str] = frozenset()  # of those: there was no time to ask

    def cards(self, of: Mapping[str, Container[str]] | None = None) -> dict[str, CardReading]:
        """By uuid. `of`: the cards of each node, as far as the caller knows them; an agent that
        tells of others is not believed. Nor is either of two that tell of the same card."""
        told = [
            card
            for name, node in self.by_node.items()
            for card in node.cards
            if of is None or card.uuid in of.get(name, ())
        ]
        count = Counter(card.uuid for card in told)
        return {card.uuid: card for card in told if count[card.uuid] == 1}


class _Unread(Exception):
    """Why there are no readings of a node."""


class _Forbidden(_Unread):
    """The API server does not let us ask any agent."""


async def read_nodes(
    kube: Kube,
    nodes: Collection[str],
    namespace: str = AGENT_NAMESPACE,
    limit_s: float = PATIENCE_S,
) -> Readings:
    """`namespace`: that of the agents. Pods of others could say anything. After `limit_s`, no
    further node is asked. Raises nothing: whoever has no right to ask gets to know nothing."""
    query = {"labelSelector": f"name={AGENT_DAEMON_SET}"}
    if len(nodes) == 1:
        query["fieldSelector"] = f"spec.nodeName={next(iter(nodes))}"
    try:
        pods = (await kube.list(PODS, namespace, query=query)).items
    except KubeError as error:
        words = f"the agents in namespace {namespace} could not be listed: {error}"
        return Readings({}, dict.fromkeys(nodes, words))
    agents = _by_node(pods)
    turn = asyncio.Semaphore(_AT_A_TIME)
    found: dict[str, NodeReadings] = {}
    problems: dict[str, str] = {}

    forbidden: list[str] = []
    unasked: set[str] = set()
    began_s = time.monotonic()

    async def ask(node: str) -> None:
        async with turn:
            if forbidden:  # then for all of them
                problems[node] = forbidden[0]
                return
            if time.monotonic() - began_s > limit_s:
                problems[node] = f"it was not asked: {limit_s:.0f} s were over"
                unasked.add(node)
                return
            try:
                found[node] = await _read(kube, node, agents.get(node))
            except _Forbidden as why:
                forbidden.append(str(why))
                problems[node] = str(why)
            except _Unread as why:
                problems[node] = str(why)

    async with asyncio.TaskGroup() as tasks:
        for node in nodes:
            tasks.create_task(ask(node), name="readings-of-node")
    return Readings(found, problems, frozenset(unasked))


async def _read(kube: Kube, node: str, agent: Obj | None) -> NodeReadings:
    """Raises _Unread."""
    if agent is None:
        raise _Unread("no agent runs on it")
    if not _is_ready(agent):
        raise _Unread("its agent is not ready")
    port = named_port(agent, AGENT_PORT_NAME)
    if port is None:
        raise _Unread(f'its agent has no port "{AGENT_PORT_NAME}": upgrade the chart')
    metadata = agent["metadata"]
    namespace, name = metadata["namespace"], metadata["name"]
    try:
        async with asyncio.timeout(ANSWER_LIMIT_S):
            status, body = await _page(kube, namespace, name, port)
    except TimeoutError:
        raise _Unread(f"its agent did not answer in {ANSWER_LIMIT_S:.0f} s") from None
    except Refused as error:
        raise _refusal(error, namespace) from error
    except KubeError as error:
        raise _Unread(f"its agent did not answer: {_short(str(error))}") from error
    text = body.decode("utf-8", "replace")
    if status != 200:
        raise _Unread(f"its agent has no readings: {_short(text) or f'HTTP {status}'}")
    try:
        readings = readings_of(text)
    except BadReadings as error:
        words = f"what its agent answered cannot be read: {_short(str(error))}"
        raise _Unread(words) from error
    if readings.node != node:
        raise _Unread(f"its agent answered for another node, {_short(readings.node)}")
    return readings


async def _page(kube: Kube, namespace: str, pod: str, port: int) -> tuple[int, bytes]:
    """Raises KubeError."""
    while True:
        try:
            return await page_of_pod(kube, namespace, pod, port, PATH, most_bytes=MOST_BYTES)
        except TooMany:  # somebody else forwards ports, too
            await asyncio.sleep(_PAUSE_S)


def _refusal(error: Refused, namespace: str) -> _Unread:
    if error.code in (401, 403):
        right = f"get and create pods/portforward in namespace {namespace}"
        return _Forbidden(f"you may not ask the agents: that needs the right to {right}")
    return _Unread(f"the API server does not lead to its agent: HTTP {error.code}")


def _by_node(pods: Iterable[Obj]) -> dict[str, Obj]:
    """While an agent is replaced, there can be two: a ready one that stays is the best."""

    def worth(pod: Obj) -> tuple[bool, bool]:
        return _is_ready(pod), "deletionTimestamp" not in pod["metadata"]

    placed = (pod for pod in pods if pod["spec"].get("nodeName"))
    return {pod["spec"]["nodeName"]: pod for pod in sorted(placed, key=worth)}


def _is_ready(pod: Obj) -> bool:
    """The node's controller takes this back when the node itself does not answer any more."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _short(text: str) -> str:
    """A line that a terminal can show, whatever an agent has sent."""
    line = "".join(each if each.isprintable() else " " for each in text).strip()
    return line if len(line) <= _LONGEST_WORDS else f"{line[: _LONGEST_WORDS - 3]}..."
