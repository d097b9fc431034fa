"""Webhooks that never answer, never end, or answer with more than anybody can use."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from localkube.apiserver.admission import webhooks
from localkube.apiserver.admission.webhook_client import MAX_ANSWER_BYTES
from tests.localkube.apiserver.admission.hostile_webhook import (
    PIECE,
    Behave,
    Call,
    bomb,
    hostile,
    patched,
)
from tests.localkube.apiserver.admission.small_cluster import refused, write
from tests.localkube.apiserver.admission.webhook_server import serving
from tests.localkube.apiserver.admission.webhook_subject import (
    MUTATING,
    Subject,
    a_subject,
    config_map,
    configure,
    hook,
)


@pytest.fixture
async def subject() -> AsyncIterator[Subject]:
    async with a_subject() as found:
        yield found


async def _never(call: Call) -> None:
    await call.gone()


async def _drips(call: Call) -> None:
    await call.send(call.head(1000))
    while True:
        await call.send(b" ")
        await asyncio.sleep(0.05)


async def _drips_its_head(call: Call) -> None:
    await call.send(b"HTTP/1.1 200 OK\r\n")
    while True:
        await call.send(b"a")
        await asyncio.sleep(0.05)


async def _interim_for_ever(call: Call) -> None:
    while True:
        await call.send(b"HTTP/1.1 103 Early Hints\r\n\r\n")
        await asyncio.sleep(0.001)


async def _endless(call: Call) -> None:
    await call.send(call.head(1 << 30))
    while True:
        await call.send(PIECE)


async def _endless_in_chunks(call: Call) -> None:
    await call.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        await call.send(b"1\r\n \r\n" * 10_000)


async def _endless_head(call: Call) -> None:
    await call.send(b"HTTP/1.1 200 OK\r\n")
    while True:
        await call.send(b"a: b\r\n" * 10_000)


async def _long_line(call: Call) -> None:
    await call.send(b"HTTP/1.1 200 OK\r\na: ")
    while True:
        await call.send(PIECE)


async def _closes_midway(call: Call) -> None:
    body = call.review()
    await call.send(call.head(len(body)), body[:-5])


async def _closes_at_once(call: Call) -> None:
    return


async def _bomb(call: Call) -> None:
    await call.answer(bomb(), "Content-Encoding: gzip")


async def _deep(call: Call) -> None:
    await call.answer(b'{"response":' * 900 + b"1" + b"}" * 900)


async def _many_values(call: Call) -> None:
    await call.answer(b'{"response":{"status":[' + b"{}," * 900_000 + b"1]}}")


async def _many_warnings(call: Call) -> None:
    await call.answer(call.review(warnings=[""] * 900_000))


async def _many_operations(call: Call) -> None:
    operation = {"op": "add", "path": "/a"}
    await call.answer(call.review(**patched(*([operation] * 20_000))))


async def _deep_patch(call: Call) -> None:
    value: list[Any] = []
    for _ in range(200):
        value = [value]
    await call.answer(call.review(**patched({"op": "add", "path": "/a", "value": value})))


LATE = "context deadline exceeded"
HOSTILE: dict[str, tuple[Behave, str]] = {
    "never answers": (_never, LATE),
    "drips its answer": (_drips, LATE),
    "drips its head": (_drips_its_head, LATE),
    "is always about to answer": (_interim_for_ever, LATE),
    "never ends": (_endless, f"the answer is larger than {MAX_ANSWER_BYTES} bytes"),
    "never ends, in tiny chunks": (_endless_in_chunks, ""),
    "never ends its head": (_endless_head, ""),
    "never ends a line of its head": (_long_line, ""),
    "closes midway": (_closes_midway, ""),
    "closes at once": (_closes_at_once, "Server disconnected"),
    "answers with a bomb": (_bomb, "the answer is compressed (gzip)"),
    "answers with depth": (_deep, "exceeded max depth"),
    "answers with many values": (_many_values, "more than 200000 values"),
    "answers with many warnings": (_many_warnings, "more than 200000 values"),
    "answers with many operations": (_many_operations, "The allowed maximum operations"),
    "answers with a deep patch": (_deep_patch, "exceeded max depth"),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_webhook_fails_its_own_write_only(name: str, subject: Subject) -> None:
    behave, why = HOSTILE[name]
    async with hostile(behave) as server, serving(other=lambda _: {}) as other:
        # What never answers is waited for no longer than this; all else on a busy machine, too.
        patience_s = 1 if why in (LATE, "") else 30
        bad = hook(server, "bad", "bad.b.c", timeoutSeconds=patience_s)
        configure(subject.cluster, MUTATING, bad)
        with refused(500) as error:
            await subject.mutate(write("configmaps", config_map()))
        message = error.value.status["message"]
        assert "bad.b.c" in message
        assert why in message
        assert len(message) < 3000

        ignored = bad | {"failurePolicy": "Ignore"}
        configure(subject.cluster, MUTATING, ignored, hook(other, "other"))
        thing = config_map()
        if "operations" not in name:  # a patch that cannot be applied is not a failed call
            await subject.mutate(write("configmaps", thing))
            assert thing == config_map()
            assert len(other.reviews) == 1


async def test_a_server_that_does_not_speak_tls_is_given_up(subject: Subject) -> None:
    async with hostile(_never, tls=False) as server:
        configure(subject.cluster, MUTATING, hook(server, "bad", timeoutSeconds=1))
        with refused(500) as error:
            await subject.mutate(write("configmaps", config_map()))
        assert LATE in error.value.status["message"]


async def test_writes_that_wait_for_one_webhook_leave_the_others_reachable(
    subject: Subject,
) -> None:
    """More of them than an HTTP client keeps connections by default."""
    async with hostile(_never) as server, serving(other=lambda _: {}) as other:
        configure(subject.cluster, MUTATING, hook(server, "bad", timeoutSeconds=30))
        waiting = [
            asyncio.ensure_future(subject.mutate(write("configmaps", config_map())))
            for _ in range(150)
        ]
        for _ in waiting:
            await server.calls.get()
        configure(subject.cluster, MUTATING, hook(other, "other", timeoutSeconds=25))
        await subject.mutate(write("configmaps", config_map()))
        assert len(other.reviews) == 1
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def test_one_webhook_holds_half_of_all_writes_at_most(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "MOST_WAITING", 3)
    async with hostile(_never) as server, serving(other=lambda _: {}) as other:
        configure(subject.cluster, MUTATING, hook(server, "bad", "bad.b.c", timeoutSeconds=30))
        waiting = [
            asyncio.ensure_future(subject.mutate(write("configmaps", config_map())))
            for _ in range(3)
        ]
        calls = [await server.calls.get() for _ in waiting]
        with refused(429) as error:
            await subject.mutate(write("configmaps", config_map()))
        assert '3 writes wait for webhook "bad.b.c"' in error.value.status["message"]

        for call in calls:
            await call.answer(call.review())
        await asyncio.gather(*waiting)
        configure(subject.cluster, MUTATING, hook(other, "other"))
        await subject.mutate(write("configmaps", config_map()))


async def test_many_slow_webhooks_together_have_as_long_as_a_request(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "_ALL_OF_THEM_S", 1.0)
    async with hostile(_never) as server:
        hooks = [hook(server, "bad", f"h{n}.b.c", timeoutSeconds=30) for n in range(3)]
        configure(subject.cluster, MUTATING, *hooks)
        with refused(504) as error:
            await subject.mutate(write("configmaps", config_map()))
        assert error.value.reason == "Timeout"
