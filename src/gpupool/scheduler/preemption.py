"""Evictor: deletes the victims of a preemption, as kube-scheduler does.

The preempting pod gets the node in status.nominatedNodeName. Each victim gets a condition and an
event with the reason, and is deleted with its own grace period. The uid is a precondition of the
delete: a new pod with the same name is not touched.
"""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from gpupool.contract.pods import DISRUPTION_TARGET, PREEMPTED_BY_SCHEDULER
from gpupool.core.pods import PodRequest
from gpupool.engine.node_state import Held
from gpupool.scheduler.pending import Pending
from gpupool.scheduler.writes import WriteContext
from kubeclient.client import JSON_PATCH, STRATEGIC_PATCH, Kube
from kubeclient.errors import KubeError, NotFound, NotSent, Refused, TooMany, is_certain
from kubeclient.objects import Obj
from kubeclient.resources import PODS

log = logging.getLogger(__name__)

_UNPROCESSABLE = 422


@dataclass(frozen=True, slots=True)
class NotEvicted:
    message: str
    refused: frozenset[str] = frozenset()  # uids of victims that the API server refused to delete
    begun: bool = False  # whether victims are being deleted, or may be


async def write_nomination(kube: Kube, pod: PodRequest, node: str) -> None:
    """Raises KubeError."""
    path = PODS.path(pod.namespace, pod.name, "status")
    # A uid in a patch is a precondition: a new pod with the same name is not changed.
    nominated = {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": node}}
    await kube.patch(path, nominated, content_type=STRATEGIC_PATCH)


async def withdraw_nomination(kube: Kube, pod: PodRequest, node: str) -> None:
    """If it is for this node still. An autoscaler may have written another since, on whose node
    the pod will fit. Raises KubeError."""
    place = "/status/nominatedNodeName"
    steps = [
        {"op": "test", "path": "/metadata/uid", "value": pod.uid},
        {"op": "test", "path": place, "value": node},
        {"op": "remove", "path": place},
    ]
    path = PODS.path(pod.namespace, pod.name, "status")
    try:
        await kube.patch(path, steps, content_type=JSON_PATCH)
    except Refused as error:
        if error.code != _UNPROCESSABLE:  # a test has failed: somebody else has written
            raise


class Evictor:
    def __init__(self, context: WriteContext) -> None:
        self._kube = context.kube
        self._pending = context.state.pending
        self._claims = context.state.preemption_claims
        self._withdrawn: dict[str, asyncio.Event] = {}  # by uid: while a request is on its way
        self._reports = context.reports
        self._now = context.now
        self._may_act = context.may_act

    async def clear(
        self, nominations: Sequence[tuple[Pending, str]], victims: Sequence[Held]
    ) -> NotEvicted | None:
        """`nominations`: the pods that preempt, which are one or a whole group, with their nodes.

        None: all victims are being deleted.
        """
        try:
            # Nominations are written before the first delete. Claims are not in the API, so after a
            # failover the new leader sees only by these what is being cleared and for whom
            # (`inherited.py`).
            for pod, node in nominations:
                self._check(pod)
                await self._nominate(pod, node)
        except KubeError as error:
            return NotEvicted(str(error))
        by = {node: pod for pod, node in nominations}
        # Asked first, because the refusal of the last one must not cost the others.
        if len(victims) > 1:
            for held in victims:
                failed = await self._try(held, self._delete(held, dry_run=True), begun=False)
                if failed is not None:
                    return failed
        for count, held in enumerate(victims):
            pod = by[held.node]
            failed = await self._try(held, self._evict(held, pod, held.node), begun=count > 0)
            if failed is not None:
                return failed
        return None

    def _check(self, pod: Pending) -> None:
        if not self._may_act():
            raise NotSent("another scheduler may have taken over")
        if pod.uid not in self._pending:
            raise NotSent(f"pod {pod.shown} is not pending any more")

    async def withdraw(self, pod: Pending) -> None:
        """No node is being cleared for the pod any more. If it fails, the next try does it."""
        if pod.uid in self._withdrawn or pod.uid in self._claims:
            return
        done = self._withdrawn[pod.uid] = asyncio.Event()
        try:
            self._check(pod)
            await withdraw_nomination(self._kube, pod.request, pod.nominated)
        except KubeError as error:
            log.info("nomination not withdrawn", extra={"pod": pod.shown, "error": str(error)})
        finally:
            del self._withdrawn[pod.uid]
            done.set()

    async def _nominate(self, pod: Pending, node: str) -> None:
        while pod.uid in self._withdrawn:  # it would arrive after this one
            await self._withdrawn[pod.uid].wait()
        await write_nomination(self._kube, pod.request, node)

    async def _try(
        self, held: Held, work: Coroutine[Any, Any, None], *, begun: bool
    ) -> NotEvicted | None:
        try:
            await work
        except NotFound:  # gone already
            return None
        except KubeError as error:
            refused = is_certain(error) and not isinstance(error, NotSent | TooMany)
            return NotEvicted(
                str(error),
                frozenset({held.pod.uid}) if refused else frozenset(),
                # Without a certain answer it may have happened.
                begun=begun or not is_certain(error),
            )
        return None

    async def _evict(self, held: Held, by: Pending, node: str) -> None:
        self._check(by)
        victim = held.pod
        condition = {
            "type": DISRUPTION_TARGET,
            "status": "True",
            "reason": PREEMPTED_BY_SCHEDULER,
            "message": f"{by.scheduler}: preempting to accommodate a higher priority pod",
            "lastTransitionTime": self._now().strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        patch = {"metadata": {"uid": victim.uid}, "status": {"conditions": [condition]}}
        path = PODS.path(victim.namespace, victim.name, "status")
        try:
            await self._kube.patch(path, patch, content_type=STRATEGIC_PATCH)
        except NotFound:
            raise
        except KubeError as error:  # the condition only informs: evict anyway
            log.warning(
                "condition of victim not written", extra={"pod": victim.name, "error": str(error)}
            )
        if not victim.terminating:
            await self._delete(held)
            self._reports.preempted(_as_object(held), by, node)

    async def _delete(self, held: Held, *, dry_run: bool = False) -> None:
        options: Obj = {"preconditions": {"uid": held.pod.uid}}
        if dry_run:
            options["dryRun"] = ["All"]
        await self._kube.delete(PODS, held.pod.name, held.pod.namespace, options=options)


def _as_object(held: Held) -> Obj:
    pod = held.pod
    metadata = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
