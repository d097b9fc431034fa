"""Servers that are killed in the middle of everything: what was acknowledged is there, exactly."""

import asyncio
import random
import signal
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from kubeclient.objects import Obj
from tests.faults.api_child import ApiChild, Nursery
from tests.faults.client import CONFIGMAPS, PODS, Client, Cut, connected
from tests.faults.workload import COUNTER, Key, Ledger, Writer, is_exactly

WRITERS = 12


@pytest.fixture
def child(nursery: Nursery, tmp_path: Path) -> Iterator[ApiChild]:
    made = ApiChild(nursery, tmp_path / "data")
    made.start()
    yield made
    if Path(f"/proc/{made.pid}").exists():
        made.kill()
    made.check_log()


async def until_cut(child: ApiChild, work: Callable[[Client], Awaitable[None]]) -> None:
    try:
        async with connected(child) as client:
            await work(client)
    except Cut:
        return


async def watch(ledger: Ledger, client: Client) -> None:
    version = (await client.get(CONFIGMAPS))["metadata"]["resourceVersion"]
    async for event in client.events(CONFIGMAPS, resourceVersion=version):
        if event["type"] in ("ADDED", "MODIFIED"):
            ledger.show("ConfigMap", event["object"])
        else:
            assert event["type"] == "DELETED"
            key = "ConfigMap", event["object"]["metadata"]["name"]
            assert ledger.expected[key].is_gone


async def load(child: ApiChild, ledger: Ledger, prefix: str, end: Callable[[], None]) -> None:
    """Everybody works until `end` has ended the server."""
    draw = random.Random(prefix)
    async with asyncio.TaskGroup() as tasks:
        for number in range(WRITERS):
            writer = Writer(ledger, f"{prefix}-{number}", random.Random(f"{prefix}-{number}"))
            tasks.create_task(until_cut(child, writer.run))
        tasks.create_task(until_cut(child, lambda client: watch(ledger, client)))
        enough = ledger.writes + draw.randrange(5, 150)
        while ledger.writes < enough:  # noqa: ASYNC110 - the point is to come unexpected
            await asyncio.sleep(0.001)
        await asyncio.sleep(draw.uniform(0, 0.01))
        await asyncio.to_thread(end)


async def found_in(child: ApiChild) -> tuple[dict[Key, Obj], int]:
    async with connected(child) as client:
        maps, pods = await client.get(CONFIGMAPS), await client.get(PODS)
    items = [("ConfigMap", each) for each in maps["items"]]
    items += [("Pod", each) for each in pods["items"]]
    found = {(kind, each["metadata"]["name"]): each for kind, each in items}
    return found, int(pods["metadata"]["resourceVersion"])


async def check(child: ApiChild, ledger: Ledger) -> None:
    found, version = await found_in(child)
    wrong = [key for key, each in ledger.expected.items() if not each.holds(found.get(key))]
    assert not wrong
    counted = int(found["ConfigMap", COUNTER]["data"]["count"])
    assert ledger.increments <= counted <= ledger.increments + ledger.attempts
    for key, seen in ledger.shown.items():
        if key in found:
            assert int(found[key]["metadata"]["resourceVersion"]) >= seen
        else:
            assert ledger.expected[key].is_gone
    assert version > ledger.newest(), "a version that was seen may come again"
    strangers = found.keys() - ledger.expected.keys()
    assert strangers == {("ConfigMap", COUNTER), ("ConfigMap", "kube-root-ca.crt")} & strangers
    settle(ledger, found, counted)


def settle(ledger: Ledger, found: dict[Key, Obj], counted: int) -> None:
    """What was left open is decided now, and must stay so."""
    for key, each in ledger.expected.items():
        obj = found.get(key)
        each.acknowledged, each.wanted = is_exactly(obj), None
        each.is_gone = obj is None
    ledger.increments, ledger.attempts = counted, 0


async def old_watches_are_told_to_list_again(child: ApiChild, ledger: Ledger) -> None:
    async with connected(child) as client:
        version = str(ledger.newest())
        async for event in client.events(CONFIGMAPS, resourceVersion=version):
            assert event["type"] == "ERROR"
            assert event["object"]["code"] == 410
            break
    async with connected(child) as client:
        listed = await client.get(CONFIGMAPS)
        version = listed["metadata"]["resourceVersion"]
        events = client.events(CONFIGMAPS, resourceVersion=version)
        async with connected(child) as other:
            path = f"{CONFIGMAPS}/{COUNTER}"
            touched = {"metadata": {"labels": {"after": version}}}
            assert (await other.call("PATCH", path, touched)).status == 200
        event = await anext(events)
        assert event["object"]["metadata"]["labels"] == {"after": version}
        ledger.show("ConfigMap", event["object"])


async def begin(child: ApiChild) -> Ledger:
    body = {"metadata": {"name": COUNTER}, "data": {"count": "0"}}
    async with connected(child) as client:
        assert (await client.call("POST", CONFIGMAPS, body)).status == 201
    return Ledger()


async def crash_again_and_again(child: ApiChild, rounds: int) -> Ledger:
    ledger = await begin(child)
    for number in range(rounds):
        await load(child, ledger, f"r{number}", child.kill)
        child.start()
        await check(child, ledger)
        await old_watches_are_told_to_list_again(child, ledger)
    return ledger


async def test_nothing_acknowledged_is_lost_when_the_server_is_killed(child: ApiChild) -> None:
    ledger = await crash_again_and_again(child, 20)
    assert ledger.writes > 20 * 50


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_nothing_acknowledged_is_lost_in_two_hundred_crashes(child: ApiChild) -> None:
    ledger = await crash_again_and_again(child, 200)
    assert ledger.writes > 200 * 50


async def test_a_stop_in_mid_write_loses_nothing_and_leaves_one_file(child: ApiChild) -> None:
    ledger = await begin(child)
    for number in range(3):
        await load(child, ledger, f"s{number}", lambda: child.end(signal.SIGTERM))
        files = {each.name for each in child.directory.glob("store.db*")}
        assert files == {"store.db", "store.db-head"}
        child.start()
        await check(child, ledger)


async def test_a_restart_without_writes_changes_nothing(child: ApiChild) -> None:
    ledger = await begin(child)
    await load(child, ledger, "d", child.kill)
    child.start()
    await check(child, ledger)
    before, version = await found_in(child)
    for end in (child.kill, lambda: child.end(signal.SIGTERM), child.kill):
        end()
        child.start()
        after, newer = await found_in(child)
        assert after == before
        assert newer >= version
        version = newer


async def test_a_server_that_is_killed_while_it_starts_starts_again(child: ApiChild) -> None:
    ledger = await begin(child)
    await load(child, ledger, "k", child.kill)
    draw = random.Random(1)
    for _ in range(10):
        child.begin()
        await asyncio.sleep(draw.uniform(0, 0.12))
        child.kill()
    child.start()
    await check(child, ledger)


async def test_a_first_start_that_is_killed_again_and_again_ends_well(
    nursery: Nursery, tmp_path: Path, child: ApiChild
) -> None:
    victim = ApiChild(nursery, tmp_path / "victim")
    draw = random.Random(2)
    for number in range(12):
        victim.begin()
        await asyncio.sleep(draw.uniform(0, 0.02 + 0.01 * number))
        victim.kill()
    victim.start()
    try:
        assert await everything(victim) == await everything(child)
    finally:
        victim.kill()
    victim.check_log()


async def everything(child: ApiChild) -> list[tuple[str, str, str]]:
    """The names of all that a new cluster has."""
    core, roles = "/api/v1", "/apis/rbac.authorization.k8s.io/v1"
    plurals = [f"{core}/{plural}" for plural in ("namespaces", "serviceaccounts", "services")]
    plurals += [f"{roles}/{p}" for p in ("clusterroles", "clusterrolebindings", "roles")]
    plurals += ["/apis/scheduling.k8s.io/v1/priorityclasses", f"{core}/endpoints"]
    found = []
    async with connected(child) as client:
        for path in plurals:
            for item in (await client.get(path))["items"]:
                metadata = item["metadata"]
                found.append((path, metadata.get("namespace", ""), metadata["name"]))
    return sorted(found)
