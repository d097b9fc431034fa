"""GPU pods that come and go on any cluster, and what holds whatever happens meanwhile.

All pods are of one size that fills cards without a rest, and there are always as many as fit, or
more: so a share that is given twice shows as a card over its size, and one that is never given back
as a pod that waits for ever.
"""

import asyncio
import collections
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from gpupool.contract.allocation import pod_allocation
from kubeclient.client import Kube
from kubeclient.objects import Obj
from kubeclient.resources import PODS

_LOOK_EVERY_S = 0.1


@dataclass
class Churn:
    kube: Kube  # straight to the API server
    namespace: str
    pod: Callable[[str], Obj]  # by name
    identity: Callable[[Obj], str]  # of a pod that is up, for ever the same; empty: not up yet
    fitting: int  # so many pods fill all cards
    units_per_card: int
    draw: random.Random
    wanted: dict[str, str] = field(default_factory=dict)  # uids by name
    known: dict[str, str] = field(default_factory=dict)  # identities by uid
    made: int = 0

    async def round(self, within_s: float) -> None:
        """A third more than fit; then as many as are too many go, at random, once they are up."""
        surplus = self.fitting // 3
        while len(self.wanted) < self.fitting + surplus:
            await self._make()
        async with asyncio.timeout(within_s):
            while surplus:
                pods = await self._look()
                up = sorted(pod["metadata"]["name"] for pod in pods if self.identity(pod))
                for name in self.draw.sample(up, min(surplus, len(up), 3)):
                    await self._end(name)
                    surplus -= 1
                await asyncio.sleep(_LOOK_EVERY_S)
            while not all(self.identity(pod) for pod in pods):
                await asyncio.sleep(_LOOK_EVERY_S)
                pods = await self._look()
        assert {pod["metadata"]["name"] for pod in pods} == set(self.wanted)

    async def _make(self) -> None:
        self.made += 1
        pod = self.pod(f"pod-{self.made}")
        pod["metadata"]["namespace"] = self.namespace
        made = await self.kube.create(PODS, pod)
        self.wanted[made["metadata"]["name"]] = made["metadata"]["uid"]

    async def _end(self, name: str) -> None:
        del self.wanted[name]
        await self.kube.delete(PODS, name, self.namespace)

    async def _look(self) -> list[Obj]:
        """The pods that are to stay, after a check of all that are there."""
        found = (await self.kube.list(PODS, self.namespace)).items
        self._assert_no_card_over(found)
        stay = [pod for pod in found if pod["metadata"]["name"] in self.wanted]
        uids = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in stay}
        assert uids == self.wanted, "a pod was lost"
        for pod in stay:
            now = self.identity(pod)
            known = self.known.setdefault(pod["metadata"]["uid"], now) if now else now
            assert known == now, f"{pod['metadata']['name']} was touched: {known} -> {now}"
        return stay

    def _assert_no_card_over(self, pods: list[Obj]) -> None:
        used: collections.Counter[str] = collections.Counter()
        by: dict[str, list[str]] = collections.defaultdict(list)
        for pod in pods:
            if pod["spec"].get("nodeName") and pod["status"].get("phase") != "Failed":
                for container in pod_allocation(pod).containers:
                    for share in container.shares:
                        used[share.uuid] += share.units
                        by[share.uuid].append(pod["metadata"]["name"])
        assert not {uuid: by[uuid] for uuid in used if used[uuid] > self.units_per_card}
