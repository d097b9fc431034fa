"""What workloads of other GPU systems would become here, and where their pods would run. Pure.

The pods are tried on the engine that schedules real ones, in a model of the cluster that they have
left: to move, each has to be created again.
"""

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from gpupool.admission.asked import gpu_containers
from gpupool.admission.cards import ClusterCards, cluster_cards
from gpupool.admission.complaints import complaints
from gpupool.admission.foreign.systems import ALL, System
from gpupool.admission.foreign.translate import translate
from gpupool.admission.legacy import modernise
from gpupool.contract.manifests import PodTemplate
from gpupool.contract.names import ANNOTATION_TRANSLATED
from gpupool.core.pods import PodRequest
from gpupool.engine.card_words import card_summary
from gpupool.engine.decide import Placement, decide
from gpupool.scheduler.cluster_state import ClusterState
from gpupool.scheduler.pending import request_with_volumes
from kubeclient.objects import Obj

_ENDED = ("Succeeded", "Failed")
_MOST_COPIES = 1000  # of one workload that are tried
UNCHANGED, TRANSLATED, REFUSED = "unchanged", "translated", "refused"


@dataclass(frozen=True, slots=True)
class Group:
    """Pods that are alike: of one workload, or one alone."""

    kind: str
    namespace: str
    name: str
    pod: Obj  # one of them
    copies: int
    uids: tuple[str, ...] = ()  # those that exist
    refusal: str = ""  # the API server would refuse them, with these words


def group_of_template(template: PodTemplate, made: Obj | None, refusal: str = "") -> Group:
    """`made`: the pod as the API server would create it; None: it would not."""
    metadata = template.pod["metadata"]
    copies = min(template.copies, _MOST_COPIES)
    about = (template.kind, metadata["namespace"], metadata["name"])
    return Group(*about, made or template.pod, copies, refusal=refusal)


def groups_of_pods(pods: Iterable[Obj]) -> list[Group]:
    """By what created them. Pods that have ended are left out."""
    by_owner: dict[tuple[str, str, str], list[Obj]] = {}
    for pod in pods:
        if (pod.get("status") or {}).get("phase") not in _ENDED:
            by_owner.setdefault(_owner(pod), []).append(pod)
    return [
        Group(*owner, same[0], len(same), tuple(pod["metadata"]["uid"] for pod in same))
        for owner, same in by_owner.items()
    ]


def _owner(pod: Obj) -> tuple[str, str, str]:
    metadata = pod["metadata"]
    owners = [each for each in metadata.get("ownerReferences") or () if each.get("controller")]
    if not owners:
        return "Pod", metadata["namespace"], metadata["name"]
    kind, name = owners[0]["kind"], owners[0]["name"]
    # A Deployment names its ReplicaSets with the hash of their template.
    digest = (metadata.get("labels") or {}).get("pod-template-hash")
    if kind == "ReplicaSet" and digest and name.endswith(f"-{digest}"):
        kind, name = "Deployment", name.removesuffix(f"-{digest}")
    return kind, metadata["namespace"], name


@dataclass(frozen=True, slots=True)
class Move:
    """What becomes of one workload."""

    kind: str
    namespace: str
    name: str
    verdict: str
    notes: tuple[str, ...] = ()  # what its words become, or why it would be refused
    pods: int = 0
    nodes: tuple[str, ...] = ()  # of the pods that fit
    why: str = ""  # the others do not

    @property
    def waiting(self) -> int:
        return 0 if self.verdict == REFUSED else self.pods - len(self.nodes)


@dataclass(frozen=True, slots=True)
class Plan:
    moves: tuple[Move, ...]
    steps: tuple[str, ...]

    @property
    def is_good(self) -> bool:
        return not any(move.verdict == REFUSED or move.waiting for move in self.moves)


@dataclass(frozen=True, slots=True)
class _Meant:
    """A workload in our words."""

    group: Group
    request: PodRequest | None  # None: it would be refused
    notes: tuple[str, ...]
    is_changed: bool = False


def plan_of(state: ClusterState, running: Iterable[System], groups: Sequence[Group]) -> Plan:
    """`state` is used up: holds are moved in it. `running`: other systems in the cluster."""
    nodes = [state.cluster.at(int(index)).node for index in state.cluster.all_nodes()]
    cards = cluster_cards(nodes)
    meant = [each for group in groups if (each := _meant(state, cards, group)) is not None]
    for each in meant:
        for uid in each.group.uids if each.is_changed else ():
            state.cluster.release(uid)
    # The largest first: what is left between them is of use to the small ones.
    meant.sort(key=lambda each: _size(each.request), reverse=True)
    moves = tuple(_move(state, each) for each in meant)
    return Plan(moves, tuple(_steps(moves, cards, sorted(running))))


def _meant(state: ClusterState, cards: ClusterCards, group: Group) -> _Meant | None:
    """None: it asks for no GPUs."""
    if group.refusal:
        return _Meant(group, None, (group.refusal,))
    pod = copy.deepcopy(group.pod)
    # Admission has translated it already, if it runs here and understands these words.
    note = (pod["metadata"].get("annotations") or {}).get(ANNOTATION_TRANSLATED)
    wrong = modernise(pod, cards.labels)
    done = translate(pod, cards, ALL)
    wrong += done.wrong
    if not wrong and not gpu_containers(pod):
        return None
    # A pod that runs has the name of its node, and what other systems have put into it.
    pod["spec"].pop("nodeName", None)
    wrong = wrong or ([] if group.uids else complaints(pod, cards))
    if wrong:
        return _Meant(group, None, tuple(wrong))
    notes = tuple(done.notes) or ((note,) if note and not group.uids else ())
    return _Meant(group, request_with_volumes(pod, state.storage), notes, bool(notes))


def _size(request: PodRequest | None) -> tuple[int, int]:
    asks = request.gpus if request else ()
    return (sum(ask.whole for ask in asks), sum(ask.units * ask.cards for ask in asks))


def _move(state: ClusterState, meant: _Meant) -> Move:
    group, request = meant.group, meant.request
    about = (group.kind, group.namespace, group.name)
    if request is None:
        return Move(*about, REFUSED, meant.notes, group.copies)
    if not meant.is_changed and group.uids:
        held = [state.cluster.held(uid) for uid in group.uids]
        nodes = tuple(each.node for each in held if each is not None)
        why = "" if len(nodes) == group.copies else "it waits now"
        return Move(*about, UNCHANGED, (), group.copies, nodes, why)
    verdict = TRANSLATED if meant.is_changed else UNCHANGED
    nodes, why = _placed(state, request, group)
    return Move(*about, verdict, meant.notes, group.copies, nodes, why)


def _placed(state: ClusterState, request: PodRequest, group: Group) -> tuple[tuple[str, ...], str]:
    nodes: list[str] = []
    for number in range(group.copies):
        uid = f"migrate/{group.kind}/{group.namespace}/{group.name}/{number}"
        pod = replace(request, uid=uid, namespace=group.namespace)
        decision = decide(state.cluster, pod, state.policy)
        if not isinstance(decision, Placement):
            summary = card_summary(state.cluster, pod)
            return tuple(nodes), f"{decision.message} {summary}".strip()
        state.cluster.hold(pod, decision.node, decision.allocation)
        nodes.append(decision.node)
    return tuple(nodes), ""


def _steps(moves: Sequence[Move], cards: ClusterCards, running: Sequence[System]) -> Iterable[str]:
    if not moves:
        return
    if not cards.shared:
        yield (
            "Install gpupool's agents, and label the nodes whose cards are to be shared "
            "(cgpu=true); until then a part of a card has no size. Then run this command again."
        )
    refused = [move for move in moves if move.verdict == REFUSED]
    if refused:
        yield f"Change what would be refused: {_names(refused)}."
    waiting = [move for move in moves if move.waiting]
    if waiting:
        yield f"Add cards, or ask for less, for what would wait: {_names(waiting)}."
    changed = [move for move in moves if move.verdict == TRANSLATED]
    if not changed:
        return
    for system in running:
        yield (
            f"Node by node: drain it, take {system} off it, and let gpupool's agent offer its "
            f"cards. While {system} runs on any node, admission leaves its words to it, unless "
            "admission.translate is all."
        )
    yield f"Create these again, in this order: {_names(changed)}."
    yield "Look at what has become of them: gpupool gpu pods, and gpupool doctor."


def _names(moves: Sequence[Move]) -> str:
    return ", ".join(f"{move.kind} {move.namespace}/{move.name}" for move in moves)
