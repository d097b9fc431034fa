"""What must hold when the scheduler has come to rest, judged by the API and by the naive rules."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from gpupool.contract.held_allocation import held_allocation
from gpupool.contract.names import LABEL_POD_GROUP
from gpupool.contract.nodes import node_of
from gpupool.contract.pods import pod_request
from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel, reserved_uid
from gpupool.engine.decide import Placement, decide_on
from gpupool.engine.gang import GangUnschedulable, decide_gang, size_of
from gpupool.engine.preempt import NoPreemption, preempt
from gpupool.engine.preempt_gang import preempt_gang
from gpupool.scheduler.groups import Group, group_of
from gpupool.scheduler.ledger import Knowledge
from gpupool.scheduler.pending import request_with_volumes, wants_node
from gpupool.scheduler.preemption_claims import SLACK_S
from kubeclient.objects import Obj
from tests.engine import naive
from tests.scheduler.living import Living
from tests.scheduler.model_api import UNITS

OURS = ("gpupool-scheduler",)


def world_of(living: Living, without: Collection[str] = ()) -> naive.World:
    """As the API shows it, with Bindings of unknown result and room that is kept for others.

    `without`: uids of pods that are not there.
    """
    nodes = {name: node_of(node) for name, node in living.api.nodes.items()}
    world = naive.World(nodes, {}, living.namespaces)
    for pod in living.bound().values():
        request = replace(pod_request(pod), node_name="")
        held = held_allocation(pod, request.gpus)
        world.held[request.uid] = (request, pod["spec"]["nodeName"], held)
    for uid, place in living.state.ledger.assignments():
        held_here = living.state.cluster.held(uid)
        if place.knowledge is not Knowledge.SEEN and held_here is not None:
            world.held.setdefault(uid, (held_here.pod, place.node, place.allocation))
    for kept in living.state.cluster.holds():
        if kept.reserved:
            world.held[kept.pod.uid] = (kept.pod, kept.node, kept.allocation)
    for uid in without:
        world.held.pop(uid, None)
    return world


def model_of(world: naive.World) -> ClusterModel:
    model = ClusterModel()
    for node in world.nodes.values():
        model.set_node(node)
    for name, labels in world.namespaces.items():
        model.set_namespace(name, labels)
    for pod, where, allocation in world.held.values():
        model.hold(pod, where, allocation)
    return model


def pending(living: Living) -> dict[str, Obj]:
    return {name: pod for name, pod in living.api.pods.items() if wants_node(pod, OURS)}


def request_of(living: Living, pod: Obj) -> PodRequest:
    return request_with_volumes(pod, living.storage)


def fits_somewhere(world: naive.World, request: PodRequest) -> bool:
    return any(naive.fits(world, request, node) for node in world.nodes.values())


def victims(living: Living) -> set[str]:
    """Uids of victims that have not gone yet."""
    # The condition of a victim only informs: to write it may have failed.
    known = living.state.preemption_claims.leaving()
    requests = map(pod_request, living.bound().values())
    return {
        each.uid for each in requests if each.preempted or (each.terminating and each.uid in known)
    }


def leaving(living: Living) -> set[str]:
    """Those that take too long are not waited for any more."""
    return victims(living) - set(living.state.spared.now(living.now_s))


def leaving_for_somebody(living: Living) -> set[str]:
    """Without victims whose pod does not wait for them any more.

    Those terminate as if somebody had deleted them: perhaps never, so nobody is evicted because
    they will be gone. Who may evict them counts them as victims of his own.
    """
    return leaving(living) & living.state.preemption_claims.leaving()


# -- nobody starves ----------------------------------------------------------------------------


def assert_nobody_starves(living: Living) -> None:
    waiting: dict[tuple[str, str], list[tuple[Group, PodRequest]]] = {}
    for pod in pending(living).values():
        request, group = request_of(living, pod), group_of(pod["metadata"])
        assert not isinstance(group, str)
        if living.state.queue.is_backing_off(request.uid):
            continue
        if group is not None and missing(living, group) > 0:
            waiting.setdefault(group.key, []).append((group, request))
        elif not request.unsupported and not request.waits_for:
            _assert_waits_rightly(living, request)
    for members in waiting.values():
        _assert_group_waits_rightly(living, members)


def _assert_waits_rightly(living: Living, request: PodRequest) -> None:
    open_room = _open_to(living, [request])
    world = world_of(living, open_room)
    assert not fits_somewhere(world, request), f"{request.name} fits, and waits"
    gone = leaving(living)
    if fits_somewhere(world_of(living, [*open_room, *gone]), request):
        return  # enough others are leaving
    claim = living.state.preemption_claims.get(request.uid)
    assert claim is None, f"{request.name} waits for room that will not do"
    gone = leaving_for_somebody(living)
    later = model_of(world_of(living, [*open_room, *gone]))
    found = preempt(later, request, living.state.policy, (), _not_to_evict(living, gone))
    assert isinstance(found, NoPreemption), f"{request.name} could preempt, and waits: {found}"


def _open_to(living: Living, requests: Sequence[PodRequest]) -> list[str]:
    """Room that is kept for these pods, or for less important ones that have waited for long."""
    lower = living.state.kept_room.below(min(each.priority for each in requests))
    return [reserved_uid(uid) for uid in (*(each.uid for each in requests), *lower)]


def missing(living: Living, group: Group) -> int:
    """How many members must still start before one of them may start alone."""
    living_members, placed = [], 0
    for pod in living.api.pods.values():
        other = group_of(pod["metadata"])
        if not isinstance(other, Group) or other.key != group.key:
            continue
        if "deletionTimestamp" in pod["metadata"]:
            continue
        if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            continue
        living_members.append(other.least)
        placed += (
            bool(pod["spec"].get("nodeName"))
            or living.state.ledger.assignment(pod["metadata"]["uid"]) is not None
        )
    return max(living_members, default=0) - placed


def _assert_group_waits_rightly(living: Living, members: list[tuple[Group, PodRequest]]) -> None:
    group, requests = members[0][0], [request for _, request in members]
    least = missing(living, group)
    if len(requests) < least:
        return
    open_room = _open_to(living, requests)
    fitting = [each for each in requests if not each.unsupported and not each.waits_for]
    if len(fitting) < least:
        return
    policy, gone = living.state.policy, leaving(living)
    now = decide_gang(model_of(world_of(living, open_room)), fitting, policy, least)
    assert isinstance(now, GangUnschedulable), f"group {group.name} fits, and waits"
    claimed = [each.name for each in requests if each.uid in living.state.preemption_claims]
    later = decide_gang(model_of(world_of(living, [*open_room, *gone])), fitting, policy, least)
    if not isinstance(later, GangUnschedulable):  # enough others are leaving
        assert not claimed or len(claimed) >= least, f"room only for {claimed} of {group}"
        return
    assert not claimed, f"group {group.name} waits for room that will not do"
    gone = leaving_for_somebody(living)
    smallest = sorted(fitting, key=size_of)
    highest = sorted(smallest, key=lambda pod: -pod.priority)
    for chosen in (smallest[:least], highest[:least]):
        model = model_of(world_of(living, [*open_room, *gone]))
        found = preempt_gang(model, chosen, policy, (), _not_to_evict(living, gone))
        assert isinstance(found, NoPreemption), f"group {group.name} could preempt: {found}"


def _not_to_evict(living: Living, gone: set[str]) -> set[str]:
    kept = (held.pod.uid for held in living.state.cluster.holds() if held.reserved)
    return {*living.state.spared.now(living.now_s), *gone, *kept}


def assert_victims_are_pods(living: Living) -> None:
    """A reservation of an extender is none: nobody can evict it, and it ends by itself."""
    kept = {reserved_uid(uid) for uid in living.state.cluster.reserved}
    assert not kept & living.state.preemption_claims.leaving(), "a reservation is a victim"


# -- the rest ----------------------------------------------------------------------------------


def assert_no_card_is_over(living: Living) -> None:
    over = {uuid: held for uuid, held in living.units_by_card().items() if held > UNITS}
    assert not over, over


def assert_work_is_bounded(living: Living) -> None:
    """A change costs tries by shapes, and writes by pods: nothing turns in a circle."""
    shapes = {pod.shape(living.state.cluster) for pod in living.state.pending.values()}
    kinds = 1 + len({_kind(pod) for pod in living.api.pods.values()})
    assert len(shapes) <= kinds, "pods that are alike have different shapes"
    work = living.work
    assert work.tries <= (3 + work.news + work.writes) * (kinds + 1), work
    assert work.writes <= 12 * (2 + len(living.api.pods)), work


def _kind(pod: Obj) -> str:
    """Without what only names the pod."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    labels = {k: v for k, v in metadata["labels"].items() if k != "batch.kubernetes.io/job-name"}
    nominated = metadata["uid"] if status.get("nominatedNodeName") else ""
    return repr((metadata["namespace"], sorted(labels.items()), pod["spec"], nominated))


def assert_nothing_is_left(living: Living) -> None:
    """All pods have gone: so has everything that was kept of them."""
    state, queue, reports = living.state, living.state.queue, living.scheduler._reports
    left = {
        "queue": [*queue._entries, *queue._parked, *queue._in_play, *queue._dependent],
        "reports": list(reports._news),
        "claims": [*state.preemption_claims, *state.cluster.reserved],
        "spared": list(state.spared.now(living.now_s)),
        "ledger": list(state.ledger.assignments()),
        "held": list(state.cluster.holds()),
        "others": [*state.pending, *state.groups._key, *state.unread._entries],
        "card groups": list(state.cluster.groups),
    }
    assert not any(left.values()), left


@dataclass(slots=True)
class Claimants:
    """Pods for which room is being cleared. It must stay theirs while nothing else changes."""

    told_s: float = 60.0  # a nomination is noticed here this much later at most
    until_s: dict[str, tuple[str, float]] = field(default_factory=dict)  # by uid: node and time
    void: set[tuple[str, str]] = field(default_factory=set)  # uid and node: it was not theirs once

    def note(self, living: Living) -> None:
        """Until when room is kept. After each settling: before time passes."""
        for pod in pending(living).values():
            uid, node = pod["metadata"]["uid"], (pod.get("status") or {}).get("nominatedNodeName")
            if node and self.until_s.get(uid, ("", 0.0))[0] != node:
                until_s = living.now_s + SLACK_S - self.told_s + _grace_s(living, node)
                self.until_s[uid] = (node, until_s)

    def look(self, living: Living) -> dict[str, str]:
        """Uid and node of those that will fit when the victims have gone. Before a settling."""
        self.note(living)
        found, gone = {}, victims(living)
        for pod in pending(living).values():
            uid, node = pod["metadata"]["uid"], (pod.get("status") or {}).get("nominatedNodeName")
            if not node or uid not in living.state.pending:
                continue
            if (uid, node) not in self.void and _will_fit(living, pod, node, gone):
                found[uid] = node
            else:
                self.void.add((uid, node))
        parts = {uid for uid in found if len(_mates(living, uid, found)) < _needed(living, uid)}
        self.void |= {(uid, found.pop(uid)) for uid in parts}
        return found

    def assert_kept(self, living: Living, before: dict[str, str], bound: set[str]) -> None:
        """`bound`: uids of pods that had a node before."""
        gone = victims(living)
        still = _by_uid(living)
        new = [
            (pod["spec"]["nodeName"], pod_request(pod))
            for pod in living.bound().values()
            if pod["metadata"]["uid"] not in bound and pod["metadata"]["uid"] not in before
        ]
        for uid, node in before.items():
            if uid not in still or _will_fit(living, still[uid], node, gone):
                continue
            # A group starts with all that it needs or not at all: its room is as safe as that of
            # its member with the lowest priority.
            mates, ours = _mates(living, uid, before), still[uid]["metadata"]
            priority = min(still[each]["spec"]["priority"] for each in mates)
            takers = [
                (where, pod)
                for where, pod in new
                if where in mates.values()
                and pod.priority <= priority
                and not _are_of_one_group(pod, ours)
            ]
            thieves = [pod.name for where, pod in takers if where == node]
            is_over = living.now_s >= self.until_s[uid][1]
            # Of what pods of higher priority leave it, too little for it, others may take all.
            without = {*gone, *(pod.uid for _, pod in takers)}
            had_lost = not _with_room(living, {uid: node}, without, priority) or _with_room(
                living, mates, without, priority
            ) < _needed(living, uid)
            assert is_over or not thieves or had_lost, f"{thieves} took the room of {uid} on {node}"


def _by_uid(living: Living) -> dict[str, Obj]:
    return {pod["metadata"]["uid"]: pod for pod in pending(living).values()}


def _needed(living: Living, uid: str) -> int:
    """How many pods start together with this one, or it alone."""
    group = group_of(_by_uid(living)[uid]["metadata"])
    return max(1, missing(living, group)) if isinstance(group, Group) else 1


def _mates(living: Living, uid: str, rooms: dict[str, str]) -> dict[str, str]:
    """Those of `rooms` that start together with this pod, which is one of them: uid and node."""
    waiting = _by_uid(living)
    if _needed(living, uid) == 1:
        return {uid: rooms[uid]}
    ours = waiting[uid]["metadata"]
    return {
        each: node
        for each, node in rooms.items()
        if each in waiting and _are_of_one_group(pod_request(waiting[each]), ours)
    }


def _with_room(living: Living, rooms: dict[str, str], gone: set[str], priority: int) -> int:
    """How many of these pods fit on their nodes together, beside what is kept for pods of higher
    priority than this one.
    """
    waiting, policy = _by_uid(living), living.state.policy
    model = model_of(world_of(living, [*gone, *_kept_up_to(living, priority)]))
    requests = [(request_of(living, waiting[uid]), node) for uid, node in rooms.items()]
    placed = 0
    for request, node in sorted(requests, key=lambda each: size_of(each[0]), reverse=True):
        found = decide_on(model, request, policy, (node,))
        if isinstance(found, Placement):
            model.hold(request, *found)
            placed += 1
    return placed


def _are_of_one_group(pod: PodRequest, other: Obj) -> bool:
    """The room of a group is for any of its members: it starts with those that fit best."""
    group = other["labels"].get(LABEL_POD_GROUP)
    return group is not None and (pod.namespace, pod.labels.get(LABEL_POD_GROUP)) == (
        other["namespace"],
        group,
    )


def _grace_s(living: Living, node: str) -> int:
    requests = map(pod_request, living.bound().values())
    return max(
        (each.grace_s for each in requests if each.preempted and each.node_name == node), default=0
    )


def _kept_up_to(living: Living, priority: float) -> list[str]:
    """Uids of the room that is kept for pods of this priority and of lower ones."""
    holds = living.state.cluster.holds()
    return [held.pod.uid for held in holds if held.reserved and held.pod.priority <= priority]


def _will_fit(living: Living, pod: Obj, name: str, gone: set[str]) -> bool:
    node, world = living.api.nodes.get(name), world_of(living, [*gone, *_kept_up_to(living, inf)])
    return node is not None and naive.fits(world, request_of(living, pod), node_of(node))
