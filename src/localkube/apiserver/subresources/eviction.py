"""pods/eviction: a deletion that disruption budgets may refuse.

The budget is checked and charged here, in one step with the deletion: the controller's count of
healthy pods lags behind, so evicted pods are remembered in status.disruptedPods until it has seen
them go.
"""

from functools import partial
from typing import TypeAlias

from kubeclient.objects import Obj
from kubeclient.selectors import LabelSelector, from_object
from kubeclient.turns import Turns
from localkube.apiserver import status
from localkube.apiserver.api import Api
from localkube.apiserver.decode.weight import is_long
from localkube.apiserver.patch.managed_fields import Writer, track_update
from localkube.apiserver.request import Answer, Request
from localkube.apiserver.routing import Target
from localkube.apiserver.status import created
from localkube.apiserver.store.record import Record
from localkube.apiserver.subresources.shown import show_others
from localkube.apiserver.verbs.delete import check_preconditions, delete_record
from localkube.apiserver.verbs.options import delete_options
from localkube.apiserver.verbs.read import existing
from localkube.apiserver.verbs.typed_body import typed_body

BUDGETS = "poddisruptionbudgets.policy"
# Of budgets, by the id of the record, which is held so that no other one gets the id.
_Selectors: TypeAlias = dict[int, tuple[Record, LabelSelector]]
# kube-apiserver's limit: so many entries mean that the controller does not clear them.
_DISRUPTED_LIMIT = 2000


async def evict(api: Api, request: Request, target: Target) -> Answer:
    eviction = await typed_body(api, request, "policy", "v1", "Eviction")
    name = (eviction.get("metadata") or {}).get("name") or target.name
    if name != target.name:
        raise status.bad_request("name in URL does not match name in Eviction object")
    options = delete_options(request, eviction.get("deleteOptions") or {})
    pod_target = target._replace(subresource="", sub=None)
    await show_others(api, request, target, eviction, dry_run=options.dry_run)
    selectors = await _selectors(api, request, existing(api, pod_target))
    record = existing(api, pod_target)
    check_preconditions(pod_target.kind, record, options)
    pod = record.obj()
    if _needs_budget(pod):
        _charge(api, record, selectors, dry_run=options.dry_run)
        if not options.dry_run:
            _set_condition(pod.setdefault("status", {}), _evicted(api.stamp()))
            # Not awaited: the deletion below has a later version, and versions are committed in
            # order.
            record = api.store.replace(record, pod)
            if options.resource_version:  # it was the right one, until this very change
                options = options._replace(resource_version=str(record.rv))
    await delete_record(api, request, pod_target, record, options)
    return created()


def _needs_budget(pod: Obj) -> bool:
    """Whether a budget counts the pod: not if it has ended, is being deleted or has no node."""
    phase = pod.get("status", {}).get("phase")
    return phase not in ("Succeeded", "Failed", "Pending") and (
        "deletionTimestamp" not in pod["metadata"]
    )


async def _selectors(api: Api, request: Request, pod: Record) -> _Selectors:
    """Read before the one step, because it takes long if they are many or large."""
    found: _Selectors = {}
    if not _needs_budget(pod.obj()):
        return found
    turns, user = Turns(), request.user.name if request.user is not None else ""
    for record in list(api.store.records(BUDGETS, pod.namespace)):
        if is_long(record.body):
            selector = await api.long_work.done(user, partial(_selector, record))
        else:
            selector = _selector(record)
        found[id(record)] = record, selector
        await turns.next()
    return found


def _selector(budget: Record) -> LabelSelector:
    return from_object(budget.obj()["spec"].get("selector"))


def _charge(api: Api, pod: Record, selectors: _Selectors, *, dry_run: bool) -> None:
    budgets = []
    for record in api.store.records(BUDGETS, pod.namespace):
        _, selector = selectors.get(id(record)) or (record, _selector(record))  # or it is new
        if selector.matches(pod.labels):
            budgets.append(record)
    if len(budgets) > 1:
        text = "This pod has more than one PodDisruptionBudget, "
        text += "which the eviction subresource does not support."
        raise status.failure(500, "", text)
    if not budgets:
        return
    budget = budgets[0].obj()
    if not _ready(pod.obj()) and _unready_may_go(budget):
        return
    _check(budget)
    if dry_run:
        return
    counts, now = budget["status"], api.stamp()
    counts["disruptionsAllowed"] -= 1
    counts.setdefault("disruptedPods", {})[pod.name] = now
    _set_condition(counts, _disruption_allowed(counts, now))
    kind = api.kinds.find("policy", "v1", "poddisruptionbudgets")
    assert kind is not None
    writer = Writer("kube-apiserver", now, "status")
    track_update(budgets[0].obj(), budget, writer, kind, api.schema(kind))
    api.store.replace(budgets[0], budget)


def _disruption_allowed(counts: Obj, now: str) -> Obj:
    more = counts["disruptionsAllowed"] > 0
    return {
        "type": "DisruptionAllowed",
        "status": "True" if more else "False",
        "observedGeneration": counts.get("observedGeneration", 0),
        "lastTransitionTime": now,
        "reason": "SufficientPods" if more else "InsufficientPods",
        "message": "",
    }


def _evicted(now: str) -> Obj:
    return {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": now,
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }


def _set_condition(status_of: Obj, fresh: Obj) -> None:
    """Replaces the condition of its type. The time changes only when the status does."""
    conditions = status_of.setdefault("conditions", [])
    for place, known in enumerate(conditions):
        if known["type"] == fresh["type"]:
            if known["status"] == fresh["status"]:
                fresh["lastTransitionTime"] = known["lastTransitionTime"]
            conditions[place] = fresh
            return
    conditions.append(fresh)


def _ready(pod: Obj) -> bool:
    conditions = pod.get("status", {}).get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _unready_may_go(budget: Obj) -> bool:
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    counts = budget.get("status", {})
    return bool(counts.get("currentHealthy", 0) >= counts.get("desiredHealthy", 0) > 0)


def _check(budget: Obj) -> None:
    counts = budget.get("status") or {}
    name = budget["metadata"]["name"]
    if counts.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise _too_many(f"The disruption budget {name} is still being processed by the server.", 10)
    if len(counts.get("disruptedPods") or {}) > _DISRUPTED_LIMIT:
        raise status.internal(
            f"DisruptedPods map too big - too many evictions not confirmed by PDB controller {name}"
        )
    if counts.get("disruptionsAllowed", 0) <= 0:
        healthy, wanted = counts.get("currentHealthy", 0), counts.get("desiredHealthy", 0)
        raise _too_many(
            f"The disruption budget {name} needs {wanted} healthy pods and has {healthy} currently"
        )


def _too_many(message: str, retry_after_s: int | None = None) -> status.ApiError:
    cause = {"reason": "DisruptionBudget", "message": message}
    details: Obj = {"causes": [cause]}
    headers: tuple[tuple[str, str], ...] = ()
    if retry_after_s is not None:
        details["retryAfterSeconds"] = retry_after_s
        headers = (("Retry-After", str(retry_after_s)),)
    return status.failure(
        429,
        "TooManyRequests",
        "Cannot evict pod as it would violate the pod's disruption budget.",
        details=details,
        headers=headers,
    )
