"""Carries a plan of `gpupool defrag` out, pod by pod.

The cards that are being freed are cordoned first, so that neither the pods that leave nor others
come to them. Each pod is evicted through the eviction API, which respects disruption budgets. The
pod that its controller makes instead must go where the plan says: it is nominated for that place,
and the scheduler takes it if the pod fits there. If it goes elsewhere, the cluster is not the one
of the plan, and nothing more moves.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Sequence, Set
from dataclasses import replace
from typing import NamedTuple

from gpupool.cli.defrag_cordons import Left, cordoned, ordered_shut, uuids_of
from gpupool.cli.defrag_nominations import nominated
from gpupool.cli.defrag_retries import has_retries
from gpupool.cli.programs import ask_cluster
from gpupool.cli.progress import Progress, progress
from gpupool.contract.allocation import BadAllocation, allocation_of
from gpupool.contract.names import ANNOTATION_ALLOCATION
from gpupool.engine.decide import Unschedulable, decide_on
from gpupool.engine.defrag import Move, Plan
from gpupool.orders.cards import CannotOrder
from gpupool.scheduler.beside_claims import on_cards
from gpupool.scheduler.follow import state_of
from kubeclient.client import Kube
from kubeclient.errors import KubeError, NotFound, TooMany, is_certain
from kubeclient.mirror import controller_uid
from kubeclient.objects import Obj
from kubeclient.resources import JOBS, NODES, PODS

_LONGEST_S = 600.0  # for one pod to leave, and for the next one to get a node
_PAUSE_S = 0.5
_OVER = ("Succeeded", "Failed")
# asyncio sees to the first Ctrl-C only. SIGHUP: a terminal is closed.
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Done(NamedTuple):
    moved: int
    total: int
    evicted: int = 0
    why: str = ""  # it stopped
    left: tuple[Left, ...] = ()  # cards whose cordons could not be ended

    @property
    def is_complete(self) -> bool:
        return self.moved == self.total and not self.left

    @property
    def words(self) -> str:
        said = f"{self.moved} of {self.total} pods moved."
        if self.moved < self.total:
            evicted = f"{self.evicted} {'was' if self.evicted == 1 else 'were'} evicted"
            said = f"{self.moved} of {self.total} pods moved, {evicted}. Stopped: {self.why}"
        commands = "; ".join(f"gpupool gpu uncordon {each.node} {each.uuid}" for each in self.left)
        return f"{said} Cards are still cordoned. Run: {commands}" if commands else said


class _Stopped(Exception):
    """Reality has left the plan."""


def carry_out(plan: Plan, running: Set[str], where: dict[str, str]) -> Done:
    """`running`: uids of the pods that had a node when the plan was made."""
    with progress("Moving pods", total=len(plan.moves), at_once=True) as shown:
        return ask_cluster(
            lambda kube: _until_signal(kube, plan, running, shown), doing="", **where
        )


async def _until_signal(kube: Kube, plan: Plan, running: Set[str], shown: Progress) -> Done:
    """Cordons outlive a process that just ends."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None
    # One that is ignored stays so: nohup.
    heard = [each for each in _SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]
    for number in heard:
        loop.add_signal_handler(number, task.cancel)
    try:
        return await carried_out(kube, plan, running, shown)
    finally:
        for number in heard:
            loop.remove_signal_handler(number)


async def carried_out(kube: Kube, plan: Plan, running: Set[str], shown: Progress) -> Done:
    moved, why, at, left = 0, "", "", list[Left]()
    evicted: set[str] = set()
    try:
        async with cordoned(kube, plan, _until, shown.say, left):
            await _check_room(kube, plan, running)
            for move in plan.moves:
                at = _shown(move)
                shown.say(at)
                await _move(kube, move, evicted)
                moved += 1
                shown.advance()
    except (_Stopped, CannotOrder) as error:
        why = str(error)
    except KubeError as error:
        why = f"{at}: {error}" if at else str(error)
    except asyncio.CancelledError:
        why = f"it was interrupted{f'; see where {at} is, which was next' if at else ''}."
    return Done(moved, len(plan.moves), len(evicted), why, tuple(left))


async def _check_room(kube: Kube, plan: Plan, running: Set[str]) -> None:
    """Until the cards were cordoned, other pods may have come to them: nobody is evicted then for
    room that is gone. Raises _Stopped."""
    for node in dict.fromkeys(placement.node for placement in plan.placements):
        given = [each.allocation for each in plan.placements if each.node == node]
        ours = frozenset[str]().union(*map(uuids_of, given))
        for pod in await _pods_on(kube, node):
            metadata, status = pod["metadata"], pod.get("status") or {}
            is_new = metadata["uid"] not in running and status.get("phase") not in _OVER
            if is_new and (taken := ours & _cards_of(pod)):
                name = f"{metadata['namespace']}/{metadata['name']}"
                raise _Stopped(f"pod {name} came to {_place(node, taken)} meanwhile. Plan anew.")


async def _pods_on(kube: Kube, node: str) -> list[Obj]:
    return (await kube.list(PODS, query={"fieldSelector": f"spec.nodeName={node}"})).items


async def _check_target(kube: Kube, move: Move) -> None:
    """Before the pod leaves: others may have closed its new place since the plan was made, such as
    a plan that makes room there, or have taken it. Raises _Stopped."""
    node, ours = move.target.node, uuids_of(move.target.allocation)
    there = await kube.get(NODES, node)
    # The order first: its agent may not have published it yet.
    if ordered := ours & ordered_shut(there):
        why = f"{_place(node, ordered)} is cordoned now"
    else:
        why = _no_room(there, await _pods_on(kube, node), move)
    if why:
        raise _Stopped(f"{_shown(move)} would not get the place of the plan: {why}. Plan anew.")


def _no_room(node: Obj, pods: Sequence[Obj], move: Move) -> str:
    """Why the pod would not fit on the planned cards of the node; empty: it would. Other nodes are
    not looked at, and so neither is what the pod wants of their pods or of volumes."""
    others = [pod for pod in pods if pod["metadata"]["uid"] != move.pod.uid]
    state = state_of({NODES: [node], PODS: others})
    alone = replace(move.pod, affinity=(), spreads=(), volume_terms=(), volume_zones=())
    pod = on_cards(alone, uuids_of(move.target.allocation))
    found = decide_on(state.cluster, pod, state.policy, (move.target.node,)) if pod else None
    return found.message.rstrip(".") if isinstance(found, Unschedulable) else ""


def _shown(move: Move) -> str:
    return f"pod {move.pod.namespace}/{move.pod.name}"


async def _move(kube: Kube, move: Move, evicted: set[str]) -> None:
    """`evicted`: gets the uid of the pod, if it is."""
    pod = move.pod
    shown = _shown(move)
    owner = controller_uid(await _there(kube, move))
    if not owner:
        raise _Stopped(f"{shown} has no controller any more, which would make it again.")
    async with nominated(kube, move, owner, _LONGEST_S):
        await _check_target(kube, move)
        there = await _there(kube, move)  # again: the nomination took its time
        await _check_retries(kube, there, shown)
        before = {each["metadata"]["uid"] for each in await _pods_of(kube, pod.namespace, owner)}
        await _evict(kube, there, shown, evicted)
        landed = await _next_pod(kube, pod.namespace, owner, before, shown)
    node, cards = landed["spec"]["nodeName"], _cards_of(landed)
    if (node, cards) != (move.target.node, uuids_of(move.target.allocation)):
        name = landed["metadata"]["name"]
        raise _Stopped(
            f"{shown} was to go to {_place(move.target.node, uuids_of(move.target.allocation))}; "
            f"{name}, which takes its place, went to {_place(node, cards)}."
        )


async def _check_retries(kube: Kube, pod: Obj, shown: str) -> None:
    """Since the plan was made, other pods of its Job may have failed. Raises _Stopped."""
    for owner in pod["metadata"]["ownerReferences"]:
        kind = owner.get("apiVersion"), owner["kind"]
        if not owner.get("controller") or kind != (JOBS.api_version, JOBS.kind):
            continue
        name = owner["name"]
        job = await kube.get(JOBS, name, pod["metadata"]["namespace"])
        if not has_retries(job, pod):
            raise _Stopped(f"{shown} has the Job {name}, which has no retries left. Plan anew.")


async def _there(kube: Kube, move: Move) -> Obj:
    """The pod, where the plan has it. Raises _Stopped."""
    pod, shown = move.pod, _shown(move)
    try:
        there = await kube.get(PODS, pod.name, pod.namespace)
    except NotFound as error:
        raise _Stopped(f"{shown} is gone.") from error
    if there["metadata"]["uid"] != pod.uid or there["spec"].get("nodeName") != move.source:
        raise _Stopped(f"{shown} is not on node {move.source} any more.")
    is_over = (there.get("status") or {}).get("phase") in _OVER
    if is_over or "deletionTimestamp" in there["metadata"]:
        raise _Stopped(f"{shown} ends by itself now. Plan anew.")
    return there


async def _evict(kube: Kube, pod: Obj, shown: str, evicted: set[str]) -> None:
    uid = pod["metadata"]["uid"]
    evicted.add(uid)  # before: the answer may be lost
    try:
        await kube.evict(pod)
    except KubeError as error:
        if is_certain(error):
            evicted.remove(uid)
            raise _Stopped(f"{shown} cannot be evicted: {error}") from error
        # The answer was lost, and perhaps not the request. If so, its successor has to be seen to.
        if not await _has_left(kube, pod, shown):
            evicted.remove(uid)
            raise _Stopped(f"{shown} was not evicted: {error}") from error


async def _has_left(kube: Kube, pod: Obj, shown: str) -> bool:
    """Whoever did not answer may be down for a while."""
    found: list[bool] = []

    async def is_known() -> bool:
        found.append(await _is_leaving(kube, pod))
        return True

    await _until(is_known, f"nobody says whether {shown} was evicted")
    return found[0]


async def _is_leaving(kube: Kube, pod: Obj) -> bool:
    metadata = pod["metadata"]
    try:
        there = (await kube.get(PODS, metadata["name"], metadata["namespace"]))["metadata"]
    except NotFound:
        return True
    return there["uid"] != metadata["uid"] or "deletionTimestamp" in there


async def _next_pod(kube: Kube, namespace: str, owner: str, before: set[str], shown: str) -> Obj:
    found: list[Obj] = []

    async def has_node() -> bool:
        pods = await _pods_of(kube, namespace, owner)
        new = [pod for pod in pods if pod["metadata"]["uid"] not in before]
        found[:] = [pod for pod in new if pod["spec"].get("nodeName")]
        return bool(found)

    await _until(has_node, f"no pod that takes the place of {shown} has got a node")
    return found[0]


async def _pods_of(kube: Kube, namespace: str, owner: str) -> list[Obj]:
    return [pod for pod in (await kube.list(PODS, namespace)).items if controller_uid(pod) == owner]


async def _until(holds: Callable[[], Awaitable[bool]], otherwise: str) -> None:
    """Raises _Stopped."""
    last = ""
    try:
        async with asyncio.timeout(_LONGEST_S):
            while True:
                try:
                    if await holds():
                        return
                except KubeError as error:
                    # Pods are on their way: a server that is busy or starts anew is waited for.
                    if is_certain(error) and not isinstance(error, TooMany):
                        raise
                    last = f" The last answer: {error}"
                await asyncio.sleep(_PAUSE_S)
    except TimeoutError as error:
        raise _Stopped(f"{otherwise} after {_LONGEST_S:.0f} seconds.{last}") from error


def _cards_of(pod: Obj) -> frozenset[str]:
    text = (pod["metadata"].get("annotations") or {}).get(ANNOTATION_ALLOCATION)
    try:
        return uuids_of(allocation_of(text)) if text else frozenset()
    except BadAllocation:
        return frozenset()


def _place(node: str, cards: frozenset[str]) -> str:
    return f"node {node}, card {', '.join(sorted(cards))}" if cards else f"node {node}"
