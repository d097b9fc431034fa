"""/scale: the replicas of anything that has some, in one form (autoscaling/v1 Scale)."""

from typing import Any

from kubeclient.objects import Obj
from kubeclient.selectors import from_object
from localkube.apiserver import status
from localkube.apiserver.api import Api
from localkube.apiserver.kinds import Kind
from localkube.apiserver.request import Answer, Request
from localkube.apiserver.routing import Target
from localkube.apiserver.verbs.create import write_of
from localkube.apiserver.verbs.options import write_options
from localkube.apiserver.verbs.patch import change_of
from localkube.apiserver.verbs.read import existing
from localkube.apiserver.verbs.representation import answer_object, as_served
from localkube.apiserver.verbs.typed_body import typed, typed_body
from localkube.apiserver.verbs.update import Change, update_object, whole_body

_BUILT_IN: Obj = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
}
_SCALE = Kind(
    group="autoscaling",
    version="v1",
    kind="Scale",
    plural="scales",
    singular="scale",
    namespaced=True,
    verbs=(),
)


async def get_scale(api: Api, request: Request, target: Target) -> Answer:
    record = await api.conversions.served_one(existing(api, target), target.kind)
    obj = as_served(record, target.kind)
    return answer_object(api, request, _SCALE, _scale(api, target.kind, obj))


async def write_scale(api: Api, request: Request, target: Target) -> Answer:
    """PUT and PATCH: the change is made on the Scale, then carried into the object."""
    kind = target.kind
    media = request.headers.get("content-type", "")
    change_scale: Change
    if request.method == "PUT":
        options = write_options(request, "UpdateOptions")
        change_scale = whole_body(await typed_body(api, request, "autoscaling", "v1", "Scale"))
    else:
        options = write_options(request, "PatchOptions")
        change_scale = change_of(api, request, target, media.split(";", 1)[0].strip())

    def change(old: Obj) -> Obj:
        before = _scale(api, kind, old)
        scale = typed(change_scale(before), "autoscaling", "v1", "Scale")
        replicas = (scale.get("spec") or {}).get("replicas", 0)
        if not isinstance(replicas, int) or isinstance(replicas, bool) or replicas < 0:
            raise _bad_replicas(kind, target.name, replicas)
        _put(old, _paths(api, kind)["specReplicasPath"], replicas)
        for key in ("resourceVersion", "uid"):
            given = (scale.get("metadata") or {}).get(key)
            if given:
                old["metadata"][key] = given
        return old

    written = await update_object(write_of(api, request, target, options), change)
    return answer_object(api, request, _SCALE, _scale(api, kind, written.obj))


def _bad_replicas(kind: Kind, name: str, replicas: Any) -> status.ApiError:
    if kind.custom:
        text = "should be a non-negative integer"
        problem = status.invalid_value(".spec.replicas", replicas, text)
        return status.invalid(kind.kind, kind.group, name, [problem])
    text = "must be greater than or equal to 0"
    problem = status.invalid_value("spec.replicas", replicas, text)
    return status.invalid("Scale", "autoscaling", name, [problem])


def _paths(api: Api, kind: Kind) -> Obj:
    return (api.custom.scale_paths(kind) if kind.custom else None) or _BUILT_IN


def _scale(api: Api, kind: Kind, obj: Obj) -> Obj:
    metadata = obj["metadata"]
    shown = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    paths = _paths(api, kind)
    replicas = _at(obj, paths["specReplicasPath"])
    scale_status: Obj = {"replicas": _at(obj, paths["statusReplicasPath"]) or 0}
    selector = _selector(obj, kind, paths)
    if selector:
        scale_status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in shown if key in metadata},
        "spec": {"replicas": replicas} if replicas else {},
        "status": scale_status,
    }


def _selector(obj: Obj, kind: Kind, paths: Obj) -> str:
    if kind.custom:
        path = paths.get("labelSelectorPath")
        return str(_at(obj, path) or "") if path else ""
    selector = obj["spec"].get("selector")
    if kind.kind == "ReplicationController":
        selector = {"matchLabels": selector or {}}
    return from_object(selector).text


def _at(obj: Obj, path: str) -> Any:
    value: Any = obj
    for part in path.strip(".").split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _put(obj: Obj, path: str, value: Any) -> None:
    *parents, last = path.strip(".").split(".")
    for part in parents:
        obj = obj.setdefault(part, {})
    obj[last] = value
