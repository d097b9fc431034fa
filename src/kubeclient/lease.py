"""Leader election on a Lease: of several candidates one is the leader and works.

The durations are those of kube-scheduler. Clocks of different machines are never compared, because
they may differ by more than a Lease is valid. A candidate does not look at the time in `renewTime`;
it only sees whether the value changes. If it has not changed for `valid_s` by the candidate's own
monotonic clock, the holder is gone. The leader stops earlier: it is sure for `sure_s` (shorter)
from the moment at which it sent its last successful renewal, by its own clock. So the old leader
stops before the new one starts, as long as both clocks run at about the same speed.

The leader must ask `is_sure` before each write: a leader that was frozen for a minute then writes
nothing when it wakes up. A request that was sent before, and is delayed on its way, is not stopped
by this: the work must fence it (`Term.inherits`).

Candidates may want different names served. Standbys write their names to the Lease, and the leader
serves those too. The leader hands over to a candidate that `goes_first`, because that one can do
what the others do and more.
"""

import asyncio
import contextlib
import datetime
import logging
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any

from kubeclient.client import Kube
from kubeclient.errors import AlreadyExists, Conflict, KubeError, NotFound
from kubeclient.objects import Obj
from kubeclient.resources import LEASES

log = logging.getLogger(__name__)


def seconds_since_boot() -> float:
    """Monotonic, and counts the time while the machine is suspended.

    time.monotonic() does not count that on Linux: after a suspend a leader would still be sure.
    """
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


@dataclass(frozen=True, slots=True)
class LeaseKey:
    """Which Lease the candidates compete for, and the annotations that they write to it."""

    namespace: str
    name: str
    serves_annotation: str  # written by all candidates: the names to be served
    served_before_annotation: str  # written by the leader: names of leaders that did not hand over
    wanted_by_annotation: str  # written by a candidate that goes first


@dataclass(frozen=True, slots=True)
class Candidacy:
    lease: LeaseKey
    identity: str  # unique among all candidates
    serves: frozenset[str] = frozenset()  # names to be served, whoever leads
    goes_first: bool = False  # the others hand over to it
    valid_s: float = 15.0  # others take over after so long without a renewal
    sure_s: float = 10.0  # the leader stops so long after its last renewal; below valid_s
    retry_s: float = 2.0


@dataclass(frozen=True, slots=True)
class Term:
    """One period of leadership."""

    token: str  # unique: the resourceVersion of the Lease
    serves: frozenset[str]
    # The last leader did not hand over, so requests of its may still arrive: fence them.
    inherits: bool = False
    served_before: frozenset[str] = frozenset()


Work = Callable[[Term], Coroutine[Any, Any, None]]


class Renewals:
    """Watches one Lease for renewals, by the observer's own clock."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        # The last renewal, and when it was first seen.
        self._seen: tuple[tuple[str, str], float] = (("", ""), 0.0)

    def silent_s(self, spec: Obj) -> float:
        """For how long the Lease was seen without a new renewal, by our own clock."""
        now_s = self._clock()
        # With the holder: a Lease that changes hands is renewed, too.
        renewal = (str(spec.get("holderIdentity")), str(spec.get("renewTime")))
        if self._seen[0] != renewal:
            self._seen = (renewal, now_s)
        return now_s - self._seen[1]


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
        self._renewals = Renewals(clock)
        self._acquired = ""  # acquireTime of our own term
        self._is_wanted = False  # a candidate that goes first waits for the Lease
        self.holder = ""  # identity of the leader that was last seen

    def _about(self) -> dict[str, str]:
        return {"lease": self._as.lease.name, "as": self._as.identity}

    def is_sure(self) -> bool:
        """Whether this candidate is surely the leader now. Ask before every write."""
        return self._clock() < self._sure_until_s

    async def run(self, work: Work, is_settled: Callable[[], bool] = lambda: True) -> None:
        """Run `work` in each term of leadership, until cancelled.

        `is_settled` is asked when work has ended: whether every request of it was answered. Only
        then is the Lease given up. Otherwise it expires, and the next leader knows that requests
        may still arrive (`Term.inherits`).
        """
        try:
            while True:
                term = await self._asked(self._begin())
                while term is not None:
                    log.info("leading", extra=self._about())
                    served, term = term, await self._serve(term, work)
                    if term is not None:  # still the leader, with more names to serve
                        before = served.serves | served.served_before
                        term = replace(term, inherits=not is_settled(), served_before=before)
                if self._is_wanted and self.is_sure() and is_settled():
                    await self._give_up()
                await asyncio.sleep(self._as.retry_s)
        finally:
            if self.is_sure() and is_settled():
                # Shielded from a second cancellation: without it the others would wait for the
                # Lease to expire.
                await asyncio.shield(self._give_up())

    async def _serve(self, term: Term, work: Work) -> Term | None:
        """Work and renew until the Lease is lost, or a standby asks for more names (a new Term).

        What `work` raises is raised.
        """
        working = asyncio.create_task(work(term), name=f"leading-{self._as.lease.name}")
        try:
            while self.is_sure() and not self._is_wanted:
                await asyncio.wait((working,), timeout=self._as.retry_s)
                if working.done():
                    working.result()
                    return None
                renewed = await self._asked(self._renew(term))
                if renewed is not None and not renewed.serves <= term.serves:
                    return renewed
        finally:
            working.cancel()
            # The work must have ended before the next term, or before the Lease is given up.
            await asyncio.gather(working, return_exceptions=True)
        log.warning("leadership lost", extra={"lease": self._as.lease.name, "holder": self.holder})
        return None

    async def _asked(self, asking: Coroutine[Any, Any, Term | None]) -> Term | None:
        asked_s = self._clock()
        try:
            # One request that hangs must not use up the time in which a second one could renew the
            # Lease.
            async with asyncio.timeout(self._as.sure_s / 2):
                term = await asking
        except (KubeError, TimeoutError) as error:  # an earlier renewal still counts
            log.warning(
                "lease not renewed", extra={"lease": self._as.lease.name, "error": str(error)}
            )
            return None
        # Counted from when the request was sent: the others may have seen the renewal since then,
        # and the answer may be late.
        # No term: the Lease is not ours, so the leader stops at once.
        self._sure_until_s = asked_s + self._as.sure_s if term else float("-inf")
        return term

    async def _begin(self) -> Term | None:
        """None: another leads."""
        try:
            lease = await self._kube.get(LEASES, self._as.lease.name, self._as.lease.namespace)
        except NotFound:
            return await self._created()
        spec = lease.setdefault("spec", {})
        holder = spec.get("holderIdentity") or ""
        taken = holder and holder != self._as.identity
        # A free Lease, too, is left to a candidate that goes first, unless that one does not take
        # it.
        if (taken or self._gives_way(lease)) and not self._is_abandoned(lease):
            self._saw(holder)
            await self._ask_for_service(lease)
            return None
        if holder != self._as.identity:
            spec["leaseTransitions"] = int(spec.get("leaseTransitions") or 0) + 1
        before: frozenset[str] = frozenset()
        if holder:
            # The holder may have died before it fenced what it inherited itself. Even if that was
            # us: the answer to the write that took the Lease may have been lost, or came too late.
            before = self._served(lease) | self._names(
                lease, self._as.lease.served_before_annotation
            )
        self._write_names(lease, self._as.lease.served_before_annotation, before)
        self._write_names(lease, self._as.lease.serves_annotation, self._as.serves)
        lease["metadata"]["annotations"].pop(self._as.lease.wanted_by_annotation, None)
        try:
            made = await self._write(lease, _micro_time())
        except (Conflict, NotFound):
            return None  # another candidate was first
        self._is_wanted = False
        # Only `_give_up` empties the holder, and only if all requests were answered. A holder in
        # the Lease, even ourselves, means that requests may still arrive.
        return replace(self._term(made), inherits=bool(holder), served_before=before)

    async def _renew(self, term: Term) -> Term | None:
        """None: the Lease is not ours any more, or another has held it in between."""
        try:
            lease = await self._kube.get(LEASES, self._as.lease.name, self._as.lease.namespace)
        except NotFound:
            return None
        spec = lease.get("spec") or {}
        if (spec.get("holderIdentity"), spec.get("acquireTime")) != (
            self._as.identity,
            self._acquired,
        ):
            self._saw(spec.get("holderIdentity") or "")
            return None
        # The Lease is read before each renewal because standbys write to it: a resourceVersion that
        # was kept would be stale, and their names would be missed.
        self._is_wanted = self._gives_way(lease)
        return self._term(await self._write(lease, self._acquired))

    async def _created(self) -> Term | None:
        metadata = {"namespace": self._as.lease.namespace, "name": self._as.lease.name}
        lease: Obj = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata}
        self._write_names(lease, self._as.lease.serves_annotation, self._as.serves)
        self._fill(lease, _micro_time())
        lease["spec"]["leaseTransitions"] = 0
        try:
            made = await self._kube.create(LEASES, lease)
        except AlreadyExists:
            return None
        return self._term(made)

    async def _write(self, lease: Obj, acquired: str) -> Obj:
        self._fill(lease, acquired)
        # With the resourceVersion that was read: of two candidates that write, one gets a Conflict.
        return await self._kube.update(LEASES, lease)

    def _fill(self, lease: Obj, acquired: str) -> None:
        lease["spec"] = (lease.get("spec") or {}) | {
            "holderIdentity": self._as.identity,
            "leaseDurationSeconds": int(self._as.valid_s),
            "acquireTime": acquired,
            "renewTime": _micro_time(),
        }

    def _term(self, lease: Obj) -> Term:
        self.holder = self._as.identity
        self._acquired = lease["spec"]["acquireTime"]
        return Term(lease["metadata"]["resourceVersion"], self._as.serves | self._served(lease))

    def _saw(self, holder: str) -> None:
        if holder != self.holder:
            log.info("another leads", extra={"lease": self._as.lease.name, "holder": holder})
        self.holder = holder

    async def _ask_for_service(self, lease: Obj) -> None:
        annotations = lease["metadata"].setdefault("annotations", {})
        wants = self._as.goes_first and self._as.lease.wanted_by_annotation not in annotations
        if self._as.serves <= self._served(lease) and not wants:
            return
        names = self._as.serves | self._served(lease)
        self._write_names(lease, self._as.lease.serves_annotation, names)
        if wants:
            annotations[self._as.lease.wanted_by_annotation] = self._as.identity
        with contextlib.suppress(Conflict, NotFound):  # tried again with the next poll
            await self._kube.update(LEASES, lease)

    def _served(self, lease: Obj) -> frozenset[str]:
        return self._names(lease, self._as.lease.serves_annotation)

    def _names(self, lease: Obj, annotation: str) -> frozenset[str]:
        text = (lease["metadata"].get("annotations") or {}).get(annotation) or ""
        return frozenset(name for name in text.split(",") if name)

    def _write_names(self, lease: Obj, annotation: str, names: frozenset[str]) -> None:
        annotations = lease["metadata"].setdefault("annotations", {})
        annotations[annotation] = ",".join(sorted(names))

    def _gives_way(self, lease: Obj) -> bool:
        wanted = (lease["metadata"].get("annotations") or {}).get(
            self._as.lease.wanted_by_annotation
        )
        return bool(wanted) and not self._as.goes_first

    def _is_abandoned(self, lease: Obj) -> bool:
        spec = lease["spec"]
        # The holder may have been configured with a longer validity than this candidate.
        valid_s = max(self._as.valid_s, float(spec.get("leaseDurationSeconds") or 0))
        return self._renewals.silent_s(spec) >= valid_s

    async def _give_up(self) -> None:
        """Release the Lease, so that the next leader does not wait for it to expire."""
        # First stop writing, then let another one lead.
        self._sure_until_s = float("-inf")
        try:
            async with asyncio.timeout(self._as.sure_s / 2):
                lease = await self._kube.get(LEASES, self._as.lease.name, self._as.lease.namespace)
                if lease["spec"].get("holderIdentity") == self._as.identity:
                    lease["spec"] |= {"holderIdentity": "", "renewTime": _micro_time()}
                    await self._kube.update(LEASES, lease)
        except (KubeError, TimeoutError) as error:
            log.warning("lease not given up", extra={"error": str(error)})


def _micro_time() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
