"""A cluster in which anything may happen, and the scheduler that works on it, step by step.

What pods really hold is kept here as well: the API may not tell it (`hidden`).
"""

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpupool.contract.allocation import allocation_of, allocation_text
from gpupool.contract.names import (
    ANNOTATION_ALLOCATION,
    ANNOTATION_INVENTORY,
    GROUP_DEVICES,
    LABEL_GPU_COUNT,
    LABEL_POD_GROUP,
    LABEL_POD_GROUP_MIN,
)
from gpupool.contract.pods import pod_request
from gpupool.contract.volumes import Storage
from gpupool.core.gpu import Allocation, CardShare, ContainerGpus, Isolation
from gpupool.engine.decide import Placement, decide
from gpupool.scheduler.ledger import Knowledge
from gpupool.scheduler.pending import is_done
from gpupool.scheduler.writes import Write
from kubeclient.objects import Obj
from tests.scheduler.model_api import CARDS, UNITS, Fate, read_all
from tests.scheduler.stepped import Stepped, with_answers

NEWER = '{"version": 2, "pods": {}}'
ABSURD = (
    '{"version": 1, "cards": [{"index": 0, "uuid": "x", "model": "m", "memoryMiB": 2199023255552}]}'
)
UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}
FITS_NOWHERE = 60  # cards on one node


@dataclass(frozen=True, slots=True)
class Template:
    units: int  # on each card
    priority: int = 0
    cards: int = 1
    group: tuple[str, int] | None = None  # name and minimum
    namespace: str = "default"
    app: str = "b"
    spec: Mapping[str, Any] = field(default_factory=dict)
    grace_s: int = 30


@dataclass(frozen=True, slots=True)
class Work:
    """What one settling cost."""

    tries: int = 0
    news: int = 0
    writes: int = 0


class Living(Stepped):
    # The judges (`fairness.py`) know who may wait for whom without it. With it: test_kept_room.py.
    keeps_room = False

    def __init__(self) -> None:
        super().__init__()
        self.api.graceful = True
        self.fates: deque[Fate] = deque()
        self.namespaces: dict[str, dict[str, str]] = {}
        self.volumes: dict[str, Obj] = {}
        self.claims: dict[tuple[str, str], Obj] = {}
        self.storage = Storage(self.claims, self.volumes, {})
        self.hidden: dict[str, str] = {}  # allocations that the API does not tell, by uid
        self.work = Work()  # of the last `rest`
        self._news = 0
        self._names = 0

    # -- what others do ----------------------------------------------------------------------

    def new_name(self) -> str:
        self._names += 1
        return f"p{self._names}"

    def add(self, template: Template) -> str:
        name = self.new_name()
        # As a Job does it: every pod has a label of its own.
        labels = {
            "batch.kubernetes.io/job-name": name,
            "app": template.app,
            LABEL_GPU_COUNT: str(template.cards),
        }
        if template.group is not None:
            least = str(template.group[1])
            labels |= {LABEL_POD_GROUP: template.group[0], LABEL_POD_GROUP_MIN: least}
        self.api.add_pod(
            name,
            template.units * template.cards,
            template.priority,
            template.spec,
            grace_s=template.grace_s,
            labels=labels,
            namespace=template.namespace,
        )
        return name

    def set_namespace(self, name: str, labels: dict[str, str]) -> None:
        self.namespaces[name] = labels
        self.state.namespace_changed(None, _namespace(name, labels))

    def bind_claim(self, name: str, node: str) -> None:
        """A volume claim that pods refer to is bound to a volume on this node."""
        terms = [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]
        ref = {"namespace": "default", "name": name, "uid": f"claim-{name}"}
        volume = {
            "metadata": {"name": f"pv-{name}"},
            "spec": {
                "claimRef": ref,
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": terms}]}},
            },
            "status": {"phase": "Bound"},
        }
        claim = {
            "metadata": {
                **ref,
                "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
            },
            "spec": {"volumeName": f"pv-{name}", "accessModes": ["ReadWriteMany"]},
            "status": {"phase": "Bound"},
        }
        self.volumes[f"pv-{name}"], self.claims["default", name] = volume, claim
        self._tell_storage()

    def _tell_storage(self) -> None:
        for volume in self.volumes.values():
            self.state.volume_changed(None, volume)
        for claim in self.claims.values():
            self.state.volume_claim_changed(None, claim)

    def spoil(self, name: str, *, devices: bool) -> None:
        """The allocation is written by a newer version; `devices`: other annotations stay."""
        annotations = self.api.pods[name]["metadata"].get("annotations", {})
        text = annotations.get(ANNOTATION_ALLOCATION, "")
        if not text or text == NEWER:
            return
        self.hidden[self.uid(name)] = text
        lost = [] if devices else [key for key in annotations if key.startswith(GROUP_DEVICES)]
        self.api.annotate("pods", name, {ANNOTATION_ALLOCATION: NEWER, **dict.fromkeys(lost, None)})

    def mend(self, name: str) -> None:
        text = self.hidden.get(self.uid(name))
        if text is not None:
            self.api.annotate("pods", name, {ANNOTATION_ALLOCATION: text})

    def bind_elsewhere(self, units: int, node: str) -> None:
        """Another scheduler gives a card with room to a pod, and writes no allocation."""
        held = self.units_by_card()
        free = [card for card in range(CARDS) if held[f"{node}-{card}"] + units <= UNITS]
        # While a Binding is in doubt, nobody knows what is free.
        in_doubt = any(
            each.knowledge is not Knowledge.SEEN for _, each in self.state.ledger.assignments()
        )
        if node not in self.api.nodes or not free or in_doubt:
            return
        name = self.add(Template(units, spec={"nodeName": node}))
        share = CardShare(f"{node}-{free[0]}", free[0], units, units * 1024, UNITS)
        truth = Allocation((ContainerGpus("c", (share,), Isolation.LIMIT),))
        self.hidden[self.uid(name)] = allocation_text(truth)

    def reserve(self, units: int) -> None:
        """As an extender does between filter and bind."""
        pod = self.api.pods.pop(self.add(Template(units)))
        self.api.news.pop()  # the pod is of another scheduler
        request = pod_request(pod)
        found = decide(self.state.cluster, request, self.state.policy)
        if isinstance(found, Placement):
            self.state.cluster.reserve(request, found.node, found.allocation)

    def end_reservations(self) -> None:
        for uid in list(self.state.cluster.reserved):
            if uid not in self.state.preemption_claims and uid not in self.state.kept_room:
                self.state.cluster.unreserve(uid)
                self.state.wake()

    def fail_over(self) -> None:
        self.scheduler = self._new_scheduler()
        for name, labels in self.namespaces.items():
            self.state.namespace_changed(None, _namespace(name, labels))
        self._tell_storage()
        read_all(self.api, self.scheduler)
        self._news += len(self.api.pods) + len(self.api.nodes)

    # -- the scheduler works -------------------------------------------------------------------

    def tell(self) -> None:
        self._news += len(self.api.news)
        super().tell()

    async def rest(self) -> None:
        """Until there is nothing to try, at this time of the clock."""
        tries, writes = 0, self.api.writes
        limit = 400 + 60 * len(self.api.pods)
        self.tell()
        while (uid := self.scheduler._next(self.now_s)) is not None:
            tries += 1
            assert tries < limit, "the scheduler does not come to rest"
            await self.write(self.scheduler._cycle.try_pod(self.state.pending[uid]))
            self.tell()
        self.work = Work(tries, self._news, self.api.writes - writes)
        self._news = 0

    async def write(self, writes: list[Write], *_: Fate) -> None:
        for write in writes:
            fates = list(self.fates)
            self.fates.clear()
            await with_answers(self.api, write(), *fates)

    # -- the truth -----------------------------------------------------------------------------

    def bound(self) -> dict[str, Obj]:
        """By name: pods that have a node and have not ended."""
        return {
            name: pod
            for name, pod in self.api.pods.items()
            if pod["spec"].get("nodeName") and not is_done(pod)
        }

    def units_by_card(self) -> Counter[str]:
        held: Counter[str] = Counter()
        for pod in self.bound().values():
            text = self.hidden.get(pod["metadata"]["uid"]) or pod["metadata"].get(
                "annotations", {}
            ).get(ANNOTATION_ALLOCATION, "")
            for container in allocation_of(text).containers if text else ():
                for share in container.shares:
                    held[share.uuid] += share.units
        return held


def make_absurd(living: Living, node: str) -> None:
    living.api.annotate("nodes", node, {ANNOTATION_INVENTORY: ABSURD})


def _namespace(name: str, labels: dict[str, str]) -> Obj:
    return {"metadata": {"name": name, "labels": labels}}
