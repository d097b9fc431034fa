"""A scheduler on a real API server: a large pod gets in under a stream of small ones."""

import asyncio
from pathlib import Path

from gpupool.scheduler.run import Scheduler, SchedulerSettings
from kubeclient.client import Kube
from kubeclient.lease import seconds_since_boot
from kubeclient.resources import EVENTS, PODS
from tests.scheduler.world import CARD_UNITS, NAMES, POLICY, add_node, add_pods, gpu_pod, world

FASTER = 100  # the scheduler's clock: it looks at who waits many times a second


async def small_pods(kube: Kube) -> None:
    """Two at a time run side by side, and one follows the other: the card is never free."""
    count = 0
    while True:
        listed = await kube.list(PODS, "default")
        names = sorted(p["metadata"]["name"] for p in listed.items if is_small(p) and on_node(p))
        waiting = sum(is_small(p) and not on_node(p) for p in listed.items)
        for _ in range(2 - waiting):
            count += 1
            await add_pods(kube, gpu_pod(f"small-{count:04}", units=CARD_UNITS // 2))
        if len(names) == 2:
            options = {"gracePeriodSeconds": 0}
            await kube.delete(PODS, names[0], "default", options=options)
        await asyncio.sleep(0)


def is_small(pod: dict[str, dict[str, str]]) -> bool:
    return pod["metadata"]["name"].startswith("small")


def on_node(pod: dict[str, dict[str, str]]) -> bool:
    return bool(pod["spec"].get("nodeName"))


async def test_a_large_pod_gets_in_under_a_stream_of_small_ones(tmp_path: Path) -> None:
    async with world(tmp_path) as kube:
        await add_node(kube, "n", 1)
        settings = SchedulerSettings(
            POLICY, NAMES, clock=lambda: FASTER * seconds_since_boot(), keeps_room=True
        )
        scheduler = asyncio.ensure_future(Scheduler(kube, settings).run())
        stream = asyncio.ensure_future(small_pods(kube))
        try:
            await add_pods(kube, gpu_pod("large", units=CARD_UNITS))
            async with asyncio.timeout(100):
                while True:
                    assert not stream.done(), stream.exception()
                    large = await kube.get(PODS, "large", "default")
                    if on_node(large) and await is_reserved(kube):
                        break
                    await asyncio.sleep(0.05)
        finally:
            for task in (stream, scheduler):
                task.cancel()
            await asyncio.gather(stream, scheduler, return_exceptions=True)


async def is_reserved(kube: Kube) -> bool:
    listed = await kube.list(EVENTS, "default")
    return any(
        event["reason"] == "Reserved" and "expected in" in event["message"]
        for event in listed.items
    )
