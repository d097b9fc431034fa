"""ReplicaSet: so many pods of one template, no more and no fewer."""

import asyncio

from gpupool.contract.objects import Obj
from gpupool.core.selectors import from_object
from gpupool.kube.errors import KubeError, NotFound, Refused
from gpupool.kube.events import NORMAL, WARNING
from gpupool.kube.mirror import Key, controller_uid
from gpupool.kube.resources import PODS, REPLICA_SETS
from gpupool.localcluster.controllers.expectations import Expectations
from gpupool.localcluster.controllers.pods import (
    deletion_rank,
    is_active,
    pod_from_template,
    seconds_to_available,
)
from gpupool.localcluster.controllers.run import (
    Context,
    Controller,
    Watch,
    controlled_by,
)

BURST = 500  # pods made or removed in one go
_BY_CONTROLLER = "controller"


def controller() -> Controller:
    expectations = Expectations()

    async def reconcile(key: Key, context: Context) -> float | None:
        replica_set = context.of(REPLICA_SETS).get(key[1], key[0])
        if replica_set is None:
            expectations.forget(key)
            return None
        return await _reconcile(replica_set, key, context, expectations)

    return Controller(
        "replicaset-controller",
        (Watch(REPLICA_SETS), Watch(PODS, controlled_by("ReplicaSet"))),
        reconcile,
        prepare=lambda context: context.of(PODS).add_index(
            _BY_CONTROLLER, lambda pod: [controller_uid(pod)]
        ),
    )


async def _reconcile(
    replica_set: Obj, key: Key, context: Context, expectations: Expectations
) -> float | None:
    owned = context.of(PODS).by(_BY_CONTROLLER, replica_set["metadata"]["uid"])
    active = [pod for pod in owned if is_active(pod)]
    now_s = context.now().timestamp()
    names = {pod["metadata"]["name"] for pod in owned}
    uids = {pod["metadata"]["uid"] for pod in active}
    again_s: float | None = None
    failure = ""
    if not expectations.met(key, names, uids, now_s):
        again_s = 1.0  # in case the watch event never comes
    elif "deletionTimestamp" not in replica_set["metadata"]:
        difference = replica_set["spec"].get("replicas", 1) - len(active)
        if difference > 0:
            failure = await _create(replica_set, key, min(difference, BURST), context, expectations)
        elif difference < 0:
            surplus = sorted(active, key=deletion_rank)[: min(-difference, BURST)]
            await _delete(replica_set, key, surplus, context, expectations)
    soon = await _update_status(replica_set, active, context, failure)
    waits = [s for s in (again_s, soon, 5.0 if failure else None) if s is not None]
    return min(waits) if waits else None


async def _create(
    replica_set: Obj, key: Key, count: int, context: Context, expectations: Expectations
) -> str:
    """Slowly first: a template that is refused is refused once, not five hundred times."""
    template = replica_set["spec"]["template"]
    made, batch = 0, 1
    while made < count:
        size = min(batch, count - made)
        results = await asyncio.gather(
            *(_create_one(replica_set, template, context) for _ in range(size)),
            return_exceptions=True,
        )
        for result in results:
            if isinstance(result, KubeError):
                continue
            if isinstance(result, BaseException):
                raise result
            expectations.expect_created(key, result, context.now().timestamp())
        failed = [result for result in results if isinstance(result, KubeError)]
        if failed:
            text = f"Error creating: {failed[0]}"
            context.events.event(replica_set, WARNING, "FailedCreate", text)
            return str(failed[0])
        made, batch = made + size, batch * 2
    return ""


async def _create_one(replica_set: Obj, template: Obj, context: Context) -> str:
    pod = pod_from_template(replica_set, REPLICA_SETS, template)
    pod["metadata"]["generateName"] = f"{replica_set['metadata']['name']}-"
    created = await context.kube.create(PODS, pod)
    name = str(created["metadata"]["name"])
    context.events.event(replica_set, NORMAL, "SuccessfulCreate", f"Created pod: {name}")
    return name


async def _delete(
    replica_set: Obj, key: Key, pods: list[Obj], context: Context, expectations: Expectations
) -> None:
    for pod in pods:
        metadata = pod["metadata"]
        options = {"preconditions": {"uid": metadata["uid"]}}
        try:
            await context.kube.delete(
                PODS, metadata["name"], metadata["namespace"], options=options
            )
        except NotFound:
            continue
        except Refused as error:
            text = f"Error deleting: {error}"
            context.events.event(replica_set, WARNING, "FailedDelete", text)
            raise
        expectations.expect_deleted(key, metadata["uid"], context.now().timestamp())
        context.events.event(
            replica_set, NORMAL, "SuccessfulDelete", f"Deleted pod: {metadata['name']}"
        )


async def _update_status(
    replica_set: Obj, active: list[Obj], context: Context, failure: str
) -> float | None:
    """Returns when the next pod becomes available by time alone."""
    spec = replica_set["spec"]
    waits = [seconds_to_available(p, spec.get("minReadySeconds", 0), context.now()) for p in active]
    template_labels = from_object(
        {"matchLabels": (spec["template"].get("metadata") or {}).get("labels") or {}}
    )
    labelled = [p for p in active if template_labels.matches(p["metadata"].get("labels") or {})]
    status: Obj = {
        "replicas": len(active),
        "observedGeneration": replica_set["metadata"].get("generation", 0),
    }
    counts = {
        "fullyLabeledReplicas": len(labelled),
        "readyReplicas": sum(wait is not None for wait in waits),
        "availableReplicas": sum(wait == 0 for wait in waits),
    }
    status |= {name: count for name, count in counts.items() if count}
    if failure:
        status["conditions"] = [_failure(replica_set, failure, context)]
    if status != replica_set.get("status"):
        await context.kube.update_status(REPLICA_SETS, {**replica_set, "status": status})
    later = [wait for wait in waits if wait]
    return min(later) if later else None


def _failure(replica_set: Obj, message: str, context: Context) -> Obj:
    for condition in replica_set.get("status", {}).get("conditions") or ():
        if condition["type"] == "ReplicaFailure" and condition["message"] == message:
            known: Obj = condition
            return known
    return {
        "type": "ReplicaFailure",
        "status": "True",
        "reason": "FailedCreate",
        "message": message,
        "lastTransitionTime": context.now().strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
