"""Facts: what the API tells of nodes and pods, as far as history needs it. Pure."""

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gpupool.contract.gpu_asks import gpu_asks
from gpupool.contract.held_allocation import held_allocation
from gpupool.contract.names import ANNOTATION_TRANSLATED, LABEL_POOL, LABEL_USER
from gpupool.contract.nodes import node_of
from gpupool.core.gpu import CardShare, GpuAsk, Isolation
from gpupool.core.readings import CardReading, ContainerUse
from kubeclient.objects import Obj

# The pool of a node: our own label, and those of managed clusters.
POOL_LABELS = (
    LABEL_POOL,
    "alibabacloud.com/nodepool-id",
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "karpenter.sh/nodepool",
)
# Who made a pod, by label or annotation. Kubernetes itself does not tell: a pod of a Deployment is
# made by a controller, and managed fields name programs, not people.
USER_KEYS = (LABEL_USER, "hub.jupyter.org/username", "app.kubernetes.io/created-by")
_ENDED = ("Succeeded", "Failed")
_HASH = "pod-template-hash"
_FEW = 16  # containers of one card are quickly looked through


@dataclass(frozen=True, slots=True)
class NodeFacts:
    pool: str  # empty: none is known
    cards: tuple[str, ...]  # uuids
    units: int = 0  # of all its cards


@dataclass(frozen=True, slots=True)
class Held:
    """A container that asks for cards, and perhaps has some."""

    namespace: str
    pod: str
    container: str
    uid: str
    workload: str  # KIND/NAME
    user: str  # empty: not known
    node: str  # empty: it waits
    shares: tuple[CardShare, ...]
    asked_cards: int  # whole cards
    asked_units: int  # units of gpu-mem, on all cards together
    from_ms: int  # since when it asks; once it has a node, since when it has the cards
    until_ms: int | None  # when it ended; None: it goes on
    can_resize: bool = False  # its share can change while it runs
    in_template: bool = True  # it asks in our words, where `kubectl set resources` changes them


@dataclass(frozen=True, slots=True)
class Moment:
    """Everything that is known at one time."""

    at_ms: int
    nodes: Mapping[str, NodeFacts] = field(default_factory=dict)
    held: Mapping[tuple[str, str], Held] = field(default_factory=dict)  # by uid and container
    cards: Mapping[str, CardReading] = field(default_factory=dict)  # of agents that answered
    read_at_s: Mapping[str, float] = field(default_factory=dict)  # when, by node


def node_facts(node: Obj) -> NodeFacts | None:
    """None: it has no cards."""
    found = node_of(node)
    if found.inventory is None or not found.inventory.cards:
        return None
    pool = next((found.labels[name] for name in POOL_LABELS if found.labels.get(name)), "")
    cards = found.inventory.cards
    return NodeFacts(pool, tuple(card.uuid for card in cards), sum(card.units for card in cards))


def pod_facts(pod: Obj) -> list[Held]:
    """One for each container that asks for cards."""
    asks = gpu_asks(pod).asks
    if not asks:
        return []
    metadata, status = pod["metadata"], pod.get("status") or {}
    node = pod["spec"].get("nodeName", "")
    held = held_allocation(pod, asks).containers if node else ()
    shares = {gpus.container: gpus.shares for gpus in held}
    limited = {gpus.container for gpus in held if gpus.isolation is Isolation.LIMIT}
    is_foreign = ANNOTATION_TRANSLATED in (metadata.get("annotations") or {})
    scheduled = next(
        (
            each.get("lastTransitionTime", "")
            for each in status.get("conditions") or ()
            if each.get("type") == "PodScheduled" and each.get("status") == "True"
        ),
        "",
    )
    since = (scheduled if node else "") or metadata.get("creationTimestamp", "")
    return [
        Held(
            metadata["namespace"],
            metadata["name"],
            ask.container,
            metadata["uid"],
            workload_of(pod),
            user_of(metadata),
            node,
            shares.get(ask.container, ()),
            ask.whole,
            ask.units * ask.cards,
            _milliseconds(since) or 0,
            _ended_ms(status, ask),
            ask.container in limited and not ask.is_init,
            not ask.is_init and not is_foreign,
        )
        for ask in asks
    ]


def workload_of(pod: Obj) -> str:
    """The controller, as KIND/NAME; a ReplicaSet of a Deployment is called by the Deployment."""
    metadata = pod["metadata"]
    owner = next((o for o in metadata.get("ownerReferences") or () if o.get("controller")), None)
    if owner is None:
        return f"Pod/{metadata['name']}"
    kind, name = _plain(owner.get("kind", "")), _plain(owner.get("name", ""))
    suffix = (metadata.get("labels") or {}).get(_HASH, "")
    if kind == "ReplicaSet" and suffix and name.endswith(f"-{suffix}"):
        return f"Deployment/{name.removesuffix(f'-{suffix}')}"
    return f"{kind}/{name}"


def user_of(metadata: Obj) -> str:
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    for key in USER_KEYS:
        if found := _plain(annotations.get(key) or labels.get(key) or ""):
            return found
    return ""


def _plain(text: object) -> str:
    """Anybody may write anything there. It is printed in terminals, tables and spreadsheets: no
    control characters, line breaks, or letters that turn the direction of others."""
    return "".join(each if each.isprintable() else " " for each in str(text)[:253]).strip()


def use_of(card: CardReading | None, held: Held) -> ContainerUse | None:
    """What a container does with a card."""
    return None if card is None else _use_among(card.containers or (), held)


def _use_among(uses: Iterable[ContainerUse], held: Held) -> ContainerUse | None:
    for use in uses:
        is_pod = use.uid == held.uid if use.uid else use.namespace == held.namespace
        if is_pod and use.pod == held.pod and use.container in (held.container, ""):
            return use
    return None


class Uses:
    """What containers do with cards. Thousands of them on one card are not looked through for each:
    nobody keeps an agent, or those who make pods, from naming so many."""

    def __init__(self, cards: Mapping[str, CardReading]) -> None:
        self._cards = cards
        self._crowded: dict[str, dict[str, list[ContainerUse]]] = {}  # by card and name of the pod

    def of(self, uuid: str, held: Held) -> ContainerUse | None:
        card = self._cards.get(uuid)
        uses = () if card is None else card.containers or ()
        if len(uses) <= _FEW:
            return _use_among(uses, held)
        if uuid not in self._crowded:
            by_pod = self._crowded[uuid] = {}
            for use in uses:
                by_pod.setdefault(use.pod, []).append(use)
        return _use_among(self._crowded[uuid].get(held.pod, ()), held)


def _ended_ms(status: Obj, ask: GpuAsk) -> int | None:
    """An init container has ended before the others begin; the cards stay with the pod."""
    if status.get("phase") not in _ENDED:
        return None
    for each in status.get("containerStatuses") or ():
        ended = (each.get("state") or {}).get("terminated") or {}
        if each.get("name") == ask.container and (found := _milliseconds(ended.get("finishedAt"))):
            return found
    return 0  # nobody tells when: it has held nothing since it was first seen so


def _milliseconds(text: object) -> int | None:
    try:
        return int(datetime.datetime.fromisoformat(str(text)).timestamp() * 1000)
    except ValueError:
        return None
