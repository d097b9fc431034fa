"""The status of PodDisruptionBudgets: how many pods are healthy, and how many may be evicted
now."""

import datetime

from kubeclient.mirror import Key
from kubeclient.objects import Obj
from kubeclient.resources import (
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    Resource,
)
from localkube.controllers.pods import (
    controller_of,
    count_of,
    is_ready,
    is_terminating,
    parse_time,
    stamp,
)
from localkube.controllers.run import Context, Controller, Watch
from localkube.controllers.selecting import Selecting, add_pod_index, compiled, selected_pods

# The API server notes an eviction in `disruptedPods` before it deletes the pod. If the pod is still
# there after this long, the eviction did not happen.
_FORGET_AFTER_S = 120.0


async def reconcile(key: Key, context: Context) -> float | None:
    budget = context.of(DISRUPTION_BUDGETS).get(key[1], key[0])
    if budget is None:
        return None
    pods = await selected_pods(context, key[0], compiled(_selector(budget)))
    known = budget.get("status", {})
    disrupted = _still_disrupted(known.get("disruptedPods") or {}, pods, context.now())
    status = _status(budget, pods, disrupted, context)
    if status != known:
        # With the resourceVersion that was read: an eviction that the API server has noted
        # meanwhile must cause a conflict and not be overwritten.
        await context.kube.update_status(DISRUPTION_BUDGETS, {**budget, "status": status})
    return _FORGET_AFTER_S if disrupted else None


def _selector(budget: Obj) -> Obj | None:
    found: Obj | None = budget["spec"].get("selector")
    return found


def controller() -> Controller:
    budgets = Selecting(_selector)

    def add_indexes(context: Context) -> None:
        add_pod_index(context)
        budgets.follow(context.of(DISRUPTION_BUDGETS))

    return Controller(
        "disruption-controller",
        (Watch(DISRUPTION_BUDGETS), Watch(PODS, budgets.keys)),
        reconcile,
        reads=(DEPLOYMENTS, REPLICA_SETS, REPLICATION_CONTROLLERS, STATEFUL_SETS),
        add_indexes=add_indexes,
    )


def _still_disrupted(noted: Obj, pods: list[Obj], now: datetime.datetime) -> Obj:
    """Evictions noted by the API server, whose pods the mirror does not show as terminating yet."""
    there = {pod["metadata"]["name"] for pod in pods if not is_terminating(pod)}
    limit = datetime.timedelta(seconds=_FORGET_AFTER_S)
    return {
        name: since
        for name, since in noted.items()
        if name in there and now - parse_time(since) < limit
    }


def _status(budget: Obj, pods: list[Obj], disrupted: Obj, context: Context) -> Obj:
    healthy = sum(
        is_ready(pod) and not is_terminating(pod) and pod["metadata"]["name"] not in disrupted
        for pod in pods
    )
    expected, desired = _expected(budget["spec"], pods, context)
    allowed = max(0, healthy - desired) if expected > 0 else 0
    status: Obj = {
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "disruptionsAllowed": allowed,
        "expectedPods": expected,
        "observedGeneration": budget["metadata"].get("generation", 0),
        "conditions": [_condition(budget, allowed, context)],
    }
    if disrupted:
        status["disruptedPods"] = disrupted
    return status


def _expected(spec: Obj, pods: list[Obj], context: Context) -> tuple[int, int]:
    """How many pods there should be, and how many must stay healthy."""
    minimum, maximum = spec.get("minAvailable"), spec.get("maxUnavailable")
    if isinstance(minimum, int):
        return len(pods), minimum
    scale = _wanted_by_owners(pods, context)
    if maximum is not None:
        return scale, max(0, scale - count_of(maximum, scale, round_up=True))
    return scale, count_of(1 if minimum is None else minimum, scale, round_up=True)


_SCALED = (REPLICA_SETS, REPLICATION_CONTROLLERS, STATEFUL_SETS)


def _wanted_by_owners(pods: list[Obj], context: Context) -> int:
    """The sum of spec.replicas of the workloads that own the pods. Pods without an owner count as
    none, as in Kubernetes: a percentage needs a wanted number of pods."""
    wanted: dict[str, int] = {}
    for pod in pods:
        owner = _controller(pod, _SCALED, context)
        # At most two steps, as in Kubernetes: whoever writes references can make circles.
        scaled = owner and (_controller(owner, (DEPLOYMENTS,), context) or owner)
        if scaled:
            wanted[scaled["metadata"]["uid"]] = scaled["spec"].get("replicas", 1)
    return sum(wanted.values())


def _controller(obj: Obj, kinds: tuple[Resource, ...], context: Context) -> Obj | None:
    """The object's controller, if it is of these kinds. A later object of its name is not it."""
    owner = controller_of(obj)
    for resource in kinds:
        if owner and (owner["apiVersion"], owner["kind"]) == (resource.api_version, resource.kind):
            found = context.of(resource).get(owner["name"], obj["metadata"]["namespace"])
            if found is not None and found["metadata"]["uid"] == owner["uid"]:
                return found
    return None


def _condition(budget: Obj, allowed: int, context: Context) -> Obj:
    condition: Obj = {
        "type": "DisruptionAllowed",
        "status": "True" if allowed else "False",
        "reason": "SufficientPods" if allowed else "InsufficientPods",
        "message": "",
        "observedGeneration": budget["metadata"].get("generation", 0),
    }
    for known in budget.get("status", {}).get("conditions") or ():
        if known["type"] == condition["type"] and known["status"] == condition["status"]:
            return {**condition, "lastTransitionTime": known["lastTransitionTime"]}
    return {**condition, "lastTransitionTime": stamp(context.now())}
