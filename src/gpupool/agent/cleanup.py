"""Cleanup: removes what an installation wrote to the API server, once its programs are gone.

Running pods are left alone: their annotations say which cards they hold, and the limiter's files on
their nodes still limit them. What people wrote to nodes (cordons, the label `cgpu`) stays as well.
"""

import asyncio
import contextlib
import itertools
from collections.abc import Callable

from gpupool.agent.node_writes import NodeWriter, Wanted
from gpupool.contract.names import (
    ADMISSION,
    AGENT_DAEMON_SET,
    ANNOTATION_FREED,
    ANNOTATION_PLANNED_MOVES,
    ANNOTATION_SHRINKS,
    LEASE_NAMESPACE,
    SCHEDULER_LEASE,
)
from kubeclient.client import Kube
from kubeclient.errors import NotFound
from kubeclient.lease import Renewals
from kubeclient.objects import Obj
from kubeclient.resources import LEASES, NODES, PODS, SECRETS

_OTHER_ANNOTATIONS = (ANNOTATION_FREED, ANNOTATION_PLANNED_MOVES, ANNOTATION_SHRINKS)
_NODES_AT_A_TIME = 16
_PAUSE_S = 1.0


class StillThere(Exception):
    """A program still runs that would write everything again; the text names it."""


async def wait_until_gone(
    kube: Kube,
    namespace: str,
    limit_s: float,
    clock: Callable[[], float],
    tell: Callable[[str], None] = lambda _: None,
) -> None:
    """Waits until no agent of the namespace runs and nobody holds the Lease. Raises StillThere.
    `tell` hears who is waited for."""
    renewals = Renewals(clock)
    deadline = clock() + limit_s
    while who := await _agent(kube, namespace) or await _holder(kube, renewals):
        if clock() >= deadline:
            raise StillThere(who)
        tell(who)
        await asyncio.sleep(_PAUSE_S)


async def _agent(kube: Kube, namespace: str) -> str:
    agents = {"labelSelector": f"name={AGENT_DAEMON_SET}", "limit": "1"}
    found = (await kube.list(PODS, namespace, query=agents)).items
    return f"pod {namespace}/{found[0]['metadata']['name']}" if found else ""


async def _holder(kube: Kube, renewals: Renewals) -> str:
    """The leader; empty: there is none. A leader that was killed could not remove its name from the
    Lease, so a Lease that was not renewed for its whole duration does not count."""
    try:
        spec = (await kube.get(LEASES, SCHEDULER_LEASE, LEASE_NAMESPACE))["spec"]
    except NotFound:
        return ""
    is_late = renewals.silent_s(spec) > spec.get("leaseDurationSeconds", 0)
    name = spec.get("holderIdentity") or ""
    return f"{name}, which holds the Lease {SCHEDULER_LEASE}" if name and not is_late else ""


async def clean_up(
    kube: Kube, namespace: str, tell: Callable[[int, int], None] = lambda _done, _nodes: None
) -> int:
    """Returns how many nodes had something of ours. Raises KubeError. `tell` hears how many nodes
    are done, of how many."""
    with contextlib.suppress(NotFound):
        await kube.delete(LEASES, SCHEDULER_LEASE, LEASE_NAMESPACE)
    with contextlib.suppress(NotFound):
        await kube.delete(SECRETS, ADMISSION, namespace)
    slots = asyncio.Semaphore(_NODES_AT_A_TIME)

    nodes = (await kube.list(NODES)).items
    done = itertools.count(1)

    async def clean(node: Obj) -> bool:
        async with slots:
            changed = await _clean_node(kube, node)
        tell(next(done), len(nodes))
        return changed

    return sum(await asyncio.gather(*(clean(node) for node in nodes)))


async def _clean_node(kube: Kube, node: Obj) -> bool:
    """Returns whether there was anything to remove."""
    with contextlib.suppress(NotFound):
        changed = await NodeWriter(kube).write(node, Wanted())
        there = node["metadata"].get("annotations") or {}
        others = [name for name in _OTHER_ANNOTATIONS if name in there]
        if others:
            # With the uid, a node that was deleted and created again meanwhile is not touched.
            metadata = {"uid": node["metadata"]["uid"], "annotations": dict.fromkeys(others)}
            await kube.patch(NODES.path(name=node["metadata"]["name"]), {"metadata": metadata})
        return changed or bool(others)
    return False
