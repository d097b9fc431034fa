"""Where a pod that is not there yet would fit right now, by the scheduler's own engine."""

from dataclasses import dataclass

from gpupool.console.model import Model
from gpupool.engine.card_words import card_summary
from gpupool.engine.decide import Placement, decide
from gpupool.engine.explain import explain
from gpupool.engine.policies import POLICIES
from gpupool.engine.policies.mix import Mix
from kubeclient.client import Kube
from kubeclient.objects import Obj
from kubeclient.resources import PODS

_BEST_FIT = POLICIES["best-fit"](Mix())
_MOST_NAMED = 8


@dataclass(frozen=True, slots=True)
class Fit:
    fits: int  # nodes
    nodes: int
    named: tuple[str, ...]  # some of those that fit; the likeliest first
    cards: tuple[int, ...]  # of the first one
    why: str  # it fits nowhere


async def tried_pod(kube: Kube, template: Obj, namespace: str) -> Obj:
    """The pod as the API server would make it: a dry run. Raises KubeError."""
    metadata = {**(template.get("metadata") or {}), "namespace": namespace, "generateName": "try-"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    return await kube.create(PODS, pod, query={"dryRun": "All"})


def fit_of(model: Model, pod: Obj) -> Fit:
    request = model.request_of(pod)
    found = explain(model.cluster, request)
    pairs = zip(found.nodes.states, found.nodes.reasons, strict=True)
    names = [state.node.name for state, reasons in pairs if not reasons]
    decision = decide(model.cluster, request, _BEST_FIT)
    cards: tuple[int, ...] = ()
    if isinstance(decision, Placement):
        names = [decision.node, *(name for name in names if name != decision.node)]
        held = (share.index for gpus in decision.allocation.containers for share in gpus.shares)
        cards = tuple(held)
    why = "" if names else card_summary(model.cluster, request) or found.message
    return Fit(len(names), len(found.nodes), tuple(names[:_MOST_NAMED]), cards, why)
