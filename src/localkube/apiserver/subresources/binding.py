"""pods/binding: the one way to give a pod its node.

nodeName, the Binding's annotations and labels, and the PodScheduled condition are written in one
step, so that whoever sees the node sees the allocation that came with it (design D1).

Fencing: a scheduler puts the pod's uid and resourceVersion, as it knew them when it decided, into
the Binding's metadata. If the pod has changed since, the Binding is refused with a conflict. That
is what keeps two schedulers, an old leader that has not yet noticed the failover and its successor,
from both placing a pod, and one scheduler from placing a pod by a stale request. The uid alone
would not do: it stays the same while the pod is changed. kube-apiserver checks both, too.
"""

from kubeclient.objects import Obj
from localkube.apiserver import status
from localkube.apiserver.api import Api
from localkube.apiserver.request import Answer, Request
from localkube.apiserver.routing import Target
from localkube.apiserver.status import created
from localkube.apiserver.store.record import Record
from localkube.apiserver.subresources.shown import show_others
from localkube.apiserver.verbs.metadata import failed_precondition
from localkube.apiserver.verbs.options import write_options
from localkube.apiserver.verbs.read import existing
from localkube.apiserver.verbs.typed_body import typed_body


async def bind(api: Api, request: Request, target: Target) -> Answer:
    """POST pods/{name}/binding and POST bindings."""
    options = write_options(request, "CreateOptions")
    binding = await typed_body(api, request, "", "v1", "Binding")
    metadata = binding.get("metadata") or {}
    name = target.name or str(metadata.get("name", ""))
    if metadata.get("name", name) != name:
        raise status.bad_request("name in URL does not match name in Binding object")
    pods = api.kinds.find("", "v1", "pods")
    assert pods is not None
    pod_target = target._replace(kind=pods, name=name)
    await show_others(api, request, target, binding, dry_run=options.dry_run)
    # Read again, because a webhook may have changed the Binding.
    metadata = binding.get("metadata") or {}
    node = _node(binding)
    bound = _bind(api, pod_target, metadata, node, dry_run=options.dry_run)
    if bound is not None:
        await api.store.durable(bound)
    return created()


def _bind(api: Api, target: Target, metadata: Obj, node: str, *, dry_run: bool) -> Record | None:
    """The record that was stored; None for a dry run.

    Nothing awaits between the look at the pod and the write, so that no other Binding can come in
    between: the second one finds nodeName set. This is a function of its own so that the parsed pod
    is freed before the caller waits for the disk; memory that is used again at once is still in the
    processor's cache.
    """
    record = existing(api, target)
    pod = _bound(api, record, target, metadata, node)
    return None if dry_run else api.store.replace(record, pod)


def _node(binding: Obj) -> str:
    place = binding.get("target") or {}
    problems = []
    if place.get("kind") not in (None, "", "Node"):
        found = place["kind"]
        problems.append(
            f'target.kind: Unsupported value: "{found}": supported values: "Node", "<empty>"'
        )
    if not place.get("name"):
        problems.append("target.name: Required value")
    if problems:
        text = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        raise status.failure(500, "", text)
    return str(place["name"])


def _bound(api: Api, record: Record, target: Target, metadata: Obj, node: str) -> Obj:
    pod = record.obj()
    _check_preconditions(record, pod, target, metadata)
    spec = pod["spec"]
    if "deletionTimestamp" in pod["metadata"]:
        why = f"pod {record.name} is being deleted, cannot be assigned to a host"
    elif spec.get("nodeName"):
        why = f'pod {record.name} is already assigned to node "{spec["nodeName"]}"'
    elif spec.get("schedulingGates"):
        why = f"pod {record.name} has non-empty .spec.schedulingGates"
    else:
        why = ""
    if why:
        raise _binding_conflict(record.name, why)
    spec["nodeName"] = node
    for key in ("annotations", "labels"):
        if metadata.get(key):
            pod["metadata"].setdefault(key, {}).update(metadata[key])
    _scheduled(pod, api.stamp())
    return pod


def _binding_conflict(name: str, why: str) -> status.ApiError:
    message = f'Operation cannot be fulfilled on pods/binding "{name}": {why}'
    details = {"name": name, "kind": "pods/binding"}
    return status.failure(409, "Conflict", message, details=details)


def _check_preconditions(record: Record, pod: Obj, target: Target, metadata: Obj) -> None:
    # Both are optional, as in Kubernetes: kubectl and old schedulers send Bindings without them.
    uid, version = metadata.get("uid"), metadata.get("resourceVersion")
    if uid and uid != record.uid:
        raise failed_precondition(target.kind, pod["metadata"], "UID", uid)
    if version and version != str(record.rv):
        raise failed_precondition(target.kind, pod["metadata"], "ResourceVersion", version)


def _scheduled(pod: Obj, stamp: str) -> None:
    pod_status = pod.setdefault("status", {})
    conditions = pod_status.setdefault("conditions", [])
    conditions[:] = [c for c in conditions if c["type"] != "PodScheduled"]
    conditions.append(
        {
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": stamp,
        }
    )
    # A nomination keeps room for a pod that waits for a node. This pod has one.
    pod_status.pop("nominatedNodeName", None)
