"""Leader election on a Lease: of several like programs, one works.

The times are kube-scheduler's. Nobody compares clocks: a holder is gone when its Lease has not
changed for as long as it is valid, by the watch of the one who looks. The leader believes in
itself for less time than the others do, and asks `is_sure` before each thing it does, so that one
who was frozen for a minute does nothing on waking.
"""

import asyncio
import datetime
import logging
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from gpupool.contract.objects import Obj
from gpupool.kube.client import Kube
from gpupool.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from gpupool.kube.resources import LEASES

log = logging.getLogger(__name__)


def seconds_since_boot() -> float:
    """Also counts the time in which the machine slept; no step of the clock touches it."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


@dataclass(frozen=True, slots=True)
class Candidacy:
    namespace: str
    name: str  # of the Lease
    identity: str  # of this one among the candidates
    valid_s: float = 15.0  # the others wait for so long before they take over
    sure_s: float = 10.0  # the leader stops so long after its last renewal
    retry_s: float = 2.0


class Leadership:
    def __init__(
        self,
        kube: Kube,
        candidacy: Candidacy,
        clock: Callable[[], float] = seconds_since_boot,
    ) -> None:
        self._kube = kube
        self._as = candidacy
        self._clock = clock
        self._sure_until_s = float("-inf")
        self._seen: tuple[str, float] = ("", 0.0)  # version of another's Lease, since when

    def is_sure(self) -> bool:
        """Whether this one leads, and may act."""
        return self._clock() < self._sure_until_s

    async def run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Whenever it leads, works; until cancelled. `work` begins anew with each term."""
        try:
            while True:
                if await self._claimed():
                    log.info("leading", extra={"lease": self._as.name, "as": self._as.identity})
                    await self._serve(work)
                    log.warning("leading no more", extra={"lease": self._as.name})
                await asyncio.sleep(self._as.retry_s)
        finally:
            if self.is_sure():
                await asyncio.shield(self._give_up())

    async def _serve(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Until the Lease cannot be renewed. What `work` raises ends all of it."""
        working = asyncio.create_task(work(), name=f"leading-{self._as.name}")
        try:
            while self.is_sure():
                await asyncio.wait((working,), timeout=self._as.retry_s)
                if working.done():
                    return working.result()
                await self._claimed()
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    async def _claimed(self) -> bool:
        asked_s = self._clock()
        try:
            async with asyncio.timeout(self._as.sure_s / 2):
                claimed = await self._claim()
        except (KubeError, TimeoutError) as error:
            log.warning("lease not renewed", extra={"lease": self._as.name, "error": str(error)})
            return False
        # A claim counts from when it was sent: the answer may have taken its time.
        self._sure_until_s = asked_s + self._as.sure_s if claimed else float("-inf")
        return claimed

    async def _claim(self) -> bool:
        try:
            lease = await self._kube.get(LEASES, self._as.name, self._as.namespace)
        except NotFound:
            return await self._created()
        spec = lease.setdefault("spec", {})
        holder = spec.get("holderIdentity") or ""
        if holder and holder != self._as.identity and not self._is_abandoned(lease):
            return False
        now = _micro_time()
        if holder != self._as.identity:
            spec["acquireTime"] = now
            spec["leaseTransitions"] = int(spec.get("leaseTransitions") or 0) + 1
        spec["holderIdentity"] = self._as.identity
        spec["leaseDurationSeconds"] = int(self._as.valid_s)
        spec["renewTime"] = now
        try:
            await self._kube.update(LEASES, lease)
        except (Conflict, NotFound):
            return False  # another was quicker
        return True

    async def _created(self) -> bool:
        now = _micro_time()
        lease: Obj = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"namespace": self._as.namespace, "name": self._as.name},
            "spec": {
                "holderIdentity": self._as.identity,
                "leaseDurationSeconds": int(self._as.valid_s),
                "acquireTime": now,
                "renewTime": now,
                "leaseTransitions": 0,
            },
        }
        try:
            await self._kube.create(LEASES, lease)
        except AlreadyExists:
            return False
        return True

    def _is_abandoned(self, lease: Obj) -> bool:
        version, now_s = lease["metadata"]["resourceVersion"], self._clock()
        if self._seen[0] != version:
            self._seen = (version, now_s)
        valid_s = max(self._as.valid_s, float(lease["spec"].get("leaseDurationSeconds") or 0))
        return now_s - self._seen[1] >= valid_s

    async def _give_up(self) -> None:
        """All work has ended: the next may begin without a wait."""
        self._sure_until_s = float("-inf")
        try:
            async with asyncio.timeout(self._as.retry_s):
                lease = await self._kube.get(LEASES, self._as.name, self._as.namespace)
                if lease["spec"].get("holderIdentity") == self._as.identity:
                    lease["spec"] |= {"holderIdentity": "", "renewTime": _micro_time()}
                    await self._kube.update(LEASES, lease)
        except (KubeError, TimeoutError) as error:
            log.warning("lease not given up", extra={"error": str(error)})


def _micro_time() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
