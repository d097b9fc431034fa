"""The API server that is attacked, in a process of its own, and what must hold of it all the time.

- An answer is below 500, and a refusal is a Status that names its reason.
- The log has no traceback.
- It answers /readyz within a bound, after each attempt and while attempts go on.
- Memory, descriptors and threads do not grow beyond bounds.
"""

import asyncio
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import orjson

from tests.faults.api_child import TOKEN, ApiChild, Nursery, running
from tests.faults.client import CONFIGMAPS, Client, Cut, connected
from tests.localkube.apiserver.http.wire_client import Answered

ANSWER_S = 30.0  # for any answer, on a busy machine
GROWTH_MB = 96.0
GROWTH_DESCRIPTORS = 16
GROWTH_THREADS = 8
NAMESPACE = "attacked"
JSON = "application/json"
# Longer than this, a refusal is as large as what it refuses.
_LONGEST_MESSAGE = 100_000
# Refused by the HTTP layer, before there is a request: Kubernetes knows no reason for these.
_NO_REASON = (414, 417, 431)

# Answers of 500 and above that Kubernetes gives for the same request, in the same words.
AS_KUBERNETES = (
    "failed to create typed patch object",
    "failed to create manager for existing",
    "resourceVersion should not be set on objects to be created",
    "target.name: Required value",
    "target.kind: Unsupported value",
    "unknown patch type: ",
    # Of strategic merge patches, what its handler of patches passes on as it comes.
    " does not contain declared merge key: ",
    "list element types are not identical: ",
)


class Target:
    def __init__(self, child: ApiChild) -> None:
        self.child = child
        self.statuses: Counter[int] = Counter()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator["Connection"]:
        made = Connection(self)
        try:
            yield made
        finally:
            await made.leave()

    async def assert_alive(self) -> None:
        """Within the bound, on a new connection."""
        async with asyncio.timeout(ANSWER_S), connected(self.child) as client:
            assert (await client.call("GET", "/readyz")).status == 200

    def size(self) -> tuple[float, int, int]:
        process = Path(f"/proc/{self.child.pid}")
        threads = len(os.listdir(process / "task"))
        return self.child.memory_mb(), len(os.listdir(process / "fd")), threads


class Connection:
    """Stays open as long as the server lets it, and is made again after that."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._client: Client | None = None
        self._context: Any = None

    async def _open(self) -> Client:
        if self._client is None:
            self._context = connected(self._target.child)
            self._client = await self._context.__aenter__()
        return self._client

    async def leave(self) -> None:
        if self._client is not None:
            self._client = None
            await self._context.__aexit__(None, None, None)

    async def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        token: str | None = TOKEN,
    ) -> Answered:
        """Raises TimeoutError. A connection that the server has closed meanwhile is made anew."""
        lines = [f"{name}: {value}" for name, value in (headers or {}).items()]
        if token is not None:
            lines.append(f"Authorization: Bearer {token}")
        async with asyncio.timeout(ANSWER_S):
            for attempt in range(2):
                client = await self._open()
                try:
                    client.wire.request(method, path, *lines, body=body)
                    answer = await client.wire.answer(to_head=method == "HEAD")
                    break
                except Cut:
                    await self.leave()
                    if attempt:
                        raise
        if (answer.header("connection") or "").lower() == "close":
            await self.leave()
        self._target.statuses[answer.status] += 1
        return answer


def complaint(answer: Answered, *, is_head: bool = False) -> str:
    """What is wrong with an answer, whatever the request was; empty if nothing is."""
    if answer.status < 400 or is_head:
        return ""
    if answer.header("content-type") != JSON:
        # Kubernetes has no object for a path that leads nowhere.
        is_page = answer.status == 404 and answer.body == b"404 page not found\n"
        return "" if is_page else f"{answer.status} without a Status: {answer.body[:300]!r}"
    said = orjson.loads(answer.body)
    if answer.status >= 500:
        is_known = any(words in said.get("message", "") for words in AS_KUBERNETES)
        return "" if is_known else f"{answer.status}: {str(said)[:500]}"
    if (said.get("kind"), said.get("status"), said.get("code")) != (
        "Status",
        "Failure",
        answer.status,
    ):
        return f"{answer.status} with another Status: {str(said)[:300]}"
    has_reason = said.get("reason") or answer.status in _NO_REASON
    if not has_reason or not said.get("message"):
        return f"{answer.status} without a reason or a message: {str(said)[:300]}"
    if len(said["message"]) > _LONGEST_MESSAGE:
        return f"{answer.status} with a message of {len(said['message'])} characters"
    return ""


@contextmanager
def attacked(nursery: Nursery, directory: Path) -> Iterator[Target]:
    """A server, and the check that the attack has left nothing behind."""
    with running(nursery, directory) as child:
        target = Target(child)
        asyncio.run(_warm_up(target))
        memory_mb, descriptors, threads = target.size()
        yield target
        asyncio.run(_calm_down(target, descriptors))
        now_mb, _, now_threads = target.size()
        assert now_mb - memory_mb < GROWTH_MB, f"{memory_mb:.0f} MB before, {now_mb:.0f} after"
        assert now_threads - threads <= GROWTH_THREADS


async def _warm_up(target: Target) -> None:
    body = orjson.dumps({"metadata": {"name": NAMESPACE}})
    async with target.connection() as connection:
        answer = await connection.ask("POST", "/api/v1/namespaces", body, {"Content-Type": JSON})
        assert answer.status == 201, answer
        account = orjson.dumps({"metadata": {"name": "default"}})
        path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
        answer = await connection.ask("POST", path, account, {"Content-Type": JSON})
        assert answer.status == 201, answer
        await connection.ask("GET", "/openapi/v3/api/v1")
        assert (await connection.ask("GET", CONFIGMAPS)).status == 200


async def _calm_down(target: Target, descriptors: int) -> None:
    """Connections that were cut are closed in the server's own time."""
    await target.assert_alive()
    deadline = time.monotonic() + 3 * ANSWER_S
    while (found := target.size()[1]) - descriptors > GROWTH_DESCRIPTORS:
        assert time.monotonic() < deadline, f"{descriptors} descriptors before, {found} after"
        await asyncio.sleep(0.1)
