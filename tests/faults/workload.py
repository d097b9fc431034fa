"""Writers that remember what they were told, so that it can be compared with what is left.

Every object has one writer, which waits for each answer: so at any time an object is as it was
last acknowledged or, when one request is still under way, as that one wants it; never in between.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import orjson

from kubeclient.objects import Obj
from tests.faults.client import CONFIGMAPS, PODS, Client

Key = tuple[str, str]  # kind, name
Check = Callable[[Obj | None], bool]
COUNTER = "counter"


@dataclass
class Expectation:
    acknowledged: Check
    wanted: Check | None = None  # by a request without an answer yet
    is_gone: bool = False  # deleted, or about to be

    def holds(self, found: Obj | None) -> bool:
        return self.acknowledged(found) or (self.wanted is not None and self.wanted(found))


@dataclass
class Ledger:
    """What all writers, readers and watchers together know."""

    expected: dict[Key, Expectation] = field(default_factory=dict)
    shown: dict[Key, int] = field(default_factory=dict)  # the newest version that anybody saw
    increments: int = 0  # of the counter, acknowledged
    attempts: int = 0  # of increments, without an answer yet
    writes: int = 0

    def show(self, kind: str, obj: Obj) -> None:
        metadata = obj["metadata"]
        key = kind, metadata["name"]
        version = int(metadata["resourceVersion"])
        self.shown[key] = max(self.shown.get(key, 0), version)

    def newest(self) -> int:
        return max(self.shown.values(), default=0)


def is_absent(found: Obj | None) -> bool:
    return found is None


def is_exactly(obj: Obj | None) -> Check:
    return lambda found: found == obj


class Writer:
    def __init__(self, ledger: Ledger, prefix: str, draw: random.Random) -> None:
        self._ledger = ledger
        self._prefix = prefix
        self._draw = draw
        self._mine: list[Key] = []
        self._known: dict[Key, Obj] = {}
        self._made = 0

    async def run(self, client: Client) -> None:
        """Until the connection breaks."""
        acts = (self._create, self._create, self._replace, self._replace, self._delete, self._bind)
        while True:
            await self._draw.choice((*acts, self._count, self._read))(client)

    async def _ask(
        self, client: Client, key: Key, wanted: Check, request: tuple[str, str, Obj | None]
    ) -> Obj:
        expected = self._ledger.expected.setdefault(key, Expectation(is_absent))
        expected.wanted = wanted
        answer = await client.call(*request)
        assert answer.status in (200, 201), answer.body
        self._ledger.writes += 1
        expected.acknowledged, expected.wanted = wanted, None
        told: Obj = orjson.loads(answer.body)
        return told

    def _learn(self, key: Key, obj: Obj) -> None:
        self._known[key] = obj
        self._ledger.expected[key].acknowledged = is_exactly(obj)
        self._ledger.show(key[0], obj)

    async def _create(self, client: Client) -> None:
        kind = self._draw.choice(("ConfigMap", "ConfigMap", "Pod"))
        key = kind, f"{self._prefix}-{self._made}"
        self._made += 1
        body = self._config_map(key[1]) if kind == "ConfigMap" else _pod(key[1])
        wanted = _has(body)
        path = CONFIGMAPS if kind == "ConfigMap" else PODS
        self._learn(key, await self._ask(client, key, wanted, ("POST", path, body)))
        self._mine.append(key)

    def _config_map(self, name: str) -> Obj:
        fill = "x" * self._draw.choice((0, 10, 100, 5_000))
        data = {"number": str(self._draw.random()), "fill": fill}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}

    def _one_of(self, kind: str) -> Key | None:
        found = [key for key in self._mine if key[0] == kind]
        return self._draw.choice(found) if found else None

    async def _replace(self, client: Client) -> None:
        key = self._one_of("ConfigMap")
        if key is None:
            return
        old = self._known[key]
        body = old | {"data": self._config_map(key[1])["data"]}
        wanted = _replaced(old, body)
        request = ("PUT", f"{CONFIGMAPS}/{key[1]}", body)
        self._learn(key, await self._ask(client, key, wanted, request))

    async def _delete(self, client: Client) -> None:
        if not self._mine:
            return
        key = self._mine.pop(self._draw.randrange(len(self._mine)))
        self._ledger.expected[key].is_gone = True
        path = CONFIGMAPS if key[0] == "ConfigMap" else PODS
        options: Obj = {"gracePeriodSeconds": 0}
        await self._ask(client, key, is_absent, ("DELETE", f"{path}/{key[1]}", options))

    async def _bind(self, client: Client) -> None:
        key = self._one_of("Pod")
        if key is None or self._known[key]["spec"].get("nodeName"):
            return
        node = f"node-{self._draw.randrange(9)}"
        metadata = {"name": key[1], "annotations": {"example.com/card": node}}
        body: Obj = {"metadata": metadata, "target": {"kind": "Node", "name": node}}
        path = f"{PODS}/{key[1]}"
        await self._ask(client, key, _is_bound(node), ("POST", f"{path}/binding", body))
        self._learn(key, await client.get(path))

    async def _count(self, client: Client) -> None:
        """Everybody adds to one number, each to the version that they have seen."""
        path = f"{CONFIGMAPS}/{COUNTER}"
        obj = await client.get(path)
        obj["data"] = {"count": str(int(obj["data"]["count"]) + 1)}
        self._ledger.attempts += 1
        answer = await client.call("PUT", path, obj)
        self._ledger.attempts -= 1
        assert answer.status in (200, 409)
        self._ledger.increments += answer.status == 200

    async def _read(self, client: Client) -> None:
        """Somebody else's: what they are shown must not be taken back."""
        key = self._draw.choice([*self._ledger.expected, ("ConfigMap", COUNTER)])
        path = CONFIGMAPS if key[0] == "ConfigMap" else PODS
        answer = await client.call("GET", f"{path}/{key[1]}")
        if answer.status == 200:
            self._ledger.show(key[0], orjson.loads(answer.body))
        else:
            assert answer.status == 404


def _pod(name: str) -> Obj:
    container = {"name": "main", "image": "image"}
    metadata = {"name": name}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container]},
    }


def _has(body: Obj) -> Check:
    """All of it, or it was not made at all."""

    def check(found: Obj | None) -> bool:
        return (
            found is not None
            and found["metadata"]["name"] == body["metadata"]["name"]
            and found.get("data") == body.get("data")
        )

    return check


def _replaced(old: Obj, body: Obj) -> Check:
    def check(found: Obj | None) -> bool:
        return (
            found is not None
            and found["data"] == body["data"]
            and found["metadata"]["uid"] == old["metadata"]["uid"]
            and int(found["metadata"]["resourceVersion"]) > int(old["metadata"]["resourceVersion"])
        )

    return check


def _is_bound(node: str) -> Check:
    def check(found: Obj | None) -> bool:
        return (
            found is not None
            and found["spec"].get("nodeName") == node
            and found["metadata"]["annotations"] == {"example.com/card": node}
        )

    return check
