"""What the registry of each kind does to an object between admission and validation.

`prepare_create` runs on an object whose name, uid and creationTimestamp are set and whose defaults
are applied, before `validate_create`; `prepare_update` and `prepare_status_update` likewise before
the validation of an update, after status or the rest were restored from the old object. Allocating
cluster IPs and node ports, and counting generations, is not done here.
"""

from collections.abc import Callable, Mapping

from kubeclient.objects import Obj
from localkube.apiserver.defaults import prepare_batch, prepare_pods, prepare_service
from localkube.apiserver.kinds import Kind

_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


def prepare_create(obj: Obj, kind: Kind) -> None:
    prepare = _CREATE.get((kind.group, kind.kind))
    if prepare is not None:
        prepare(obj)


def prepare_update(new: Obj, old: Obj, kind: Kind) -> None:
    prepare = _UPDATE.get((kind.group, kind.kind))
    if prepare is not None:
        prepare(new, old)


def prepare_status_update(new: Obj, old: Obj, kind: Kind) -> None:
    prepare = _STATUS.get((kind.group, kind.kind))
    if prepare is not None:
        prepare(new, old)


def _namespace(obj: Obj) -> None:
    finalizers: list[str] = obj["spec"].setdefault("finalizers", [])
    if "kubernetes" not in finalizers:
        finalizers.append("kubernetes")


def _namespace_update(new: Obj, old: Obj) -> None:
    new["spec"].pop("finalizers", None)
    if "finalizers" in old["spec"]:
        new["spec"]["finalizers"] = old["spec"]["finalizers"]
    new["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = new["metadata"][
        "name"
    ]


def _persistent_volume(obj: Obj) -> None:
    obj["status"]["lastPhaseTransitionTime"] = obj["metadata"]["creationTimestamp"]


def _claim(obj: Obj) -> None:
    _data_sources(obj["spec"])


def _claim_update(new: Obj, old: Obj) -> None:
    _data_sources(new["spec"])


def _data_sources(spec: Obj) -> None:
    """`dataSource` (claims and snapshots only) and the newer `dataSourceRef` say the same."""
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and reference is None:
        groups = {"PersistentVolumeClaim": "", "VolumeSnapshot": "snapshot.storage.k8s.io"}
        if groups.get(source["kind"]) == source.get("apiGroup", ""):
            spec["dataSourceRef"] = dict(source)
        else:
            del spec["dataSource"]
    elif source is None and reference is not None and not reference.get("namespace"):
        spec["dataSource"] = {key: reference[key] for key in reference if key != "namespace"}


def _limit_range(obj: Obj) -> None:
    """The one kind that may come without a name."""
    if not obj["metadata"].get("name"):
        obj["metadata"]["name"] = obj["metadata"]["uid"]


def _service_account(obj: Obj) -> None:
    if "secrets" in obj:
        named = ({"name": secret["name"]} if "name" in secret else {} for secret in obj["secrets"])
        obj["secrets"] = list(named)


def _daemon_set(obj: Obj) -> None:
    annotations = obj["metadata"].setdefault("annotations", {})
    if _generation(annotations.get(_TEMPLATE_GENERATION)) < 1:
        annotations[_TEMPLATE_GENERATION] = "1"


def _daemon_set_update(new: Obj, old: Obj) -> None:
    """The template's own generation: clients cannot set it."""
    count = _generation(old["metadata"].get("annotations", {}).get(_TEMPLATE_GENERATION))
    if new["spec"]["template"] != old["spec"]["template"]:
        count += 1
    new["metadata"].setdefault("annotations", {})[_TEMPLATE_GENERATION] = str(count)


def _generation(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() else 0


def _custom_resource_definition_update(new: Obj, old: Obj) -> None:
    """Once stored in a version, objects may still lie there in it."""
    before = old["status"].get("storedVersions", [])
    now = [version["name"] for version in new["spec"].get("versions", ()) if version["storage"]]
    stored = [*before, *(name for name in now[:1] if name not in before)]
    if stored:
        new["status"] = new["status"] | {"storedVersions": stored}


def _resource_claim_status(new: Obj, old: Obj) -> None:
    """How a device is, goes with the device."""
    given, before = (_given_devices(obj["status"]) for obj in (new, old))
    devices = new["status"].get("devices")
    if devices:
        gone = before - given
        kept = [device for device in devices if _device_id(device) not in gone]
        new["status"] = new["status"] | {"devices": kept}


def _given_devices(status: Obj) -> set[tuple[str, ...]]:
    results = status.get("allocation", {}).get("devices", {}).get("results", ())
    return {_device_id(result) for result in results}


def _device_id(device: Obj) -> tuple[str, ...]:
    return tuple(device.get(name, "") for name in ("driver", "pool", "device", "shareID"))


_CREATE: Mapping[tuple[str, str], Callable[[Obj], None]] = {
    ("", "Pod"): prepare_pods.pod,
    ("", "Namespace"): _namespace,
    ("", "PersistentVolume"): _persistent_volume,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "Service"): prepare_service.service,
    ("", "ServiceAccount"): _service_account,
    ("", "LimitRange"): _limit_range,
    ("apps", "DaemonSet"): _daemon_set,
    ("batch", "Job"): prepare_batch.job,
}
_UPDATE: Mapping[tuple[str, str], Callable[[Obj, Obj], None]] = {
    ("", "Namespace"): _namespace_update,
    ("", "PersistentVolumeClaim"): _claim_update,
    ("", "Service"): prepare_service.service_update,
    ("", "ServiceAccount"): lambda new, old: _service_account(new),
    ("apps", "DaemonSet"): _daemon_set_update,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _custom_resource_definition_update,
}
_STATUS: Mapping[tuple[str, str], Callable[[Obj, Obj], None]] = {
    ("", "Pod"): prepare_pods.pod_status_update,
    ("resource.k8s.io", "ResourceClaim"): _resource_claim_status,
}
