"""What the registry of each kind does to an object between admission and validation.

`prepare_create` runs on a complete object (name, uid and creationTimestamp are set), before
`validate_create`; `prepare_update` likewise before `validate_update`. Allocating cluster IPs and
node ports, and counting generations, is not done here.
"""

from collections.abc import Callable, Mapping

from gpupool.contract.objects import Obj
from gpupool.localcluster.apiserver.defaults import prepare_batch, prepare_pods, prepare_service
from gpupool.localcluster.apiserver.defaults.shape import shape_of, zero_value
from gpupool.localcluster.apiserver.kinds import Kind

_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
# Kubelets register with their status.
_KEEPS_STATUS = ("Node",)


def prepare_create(obj: Obj, kind: Kind) -> None:
    if kind.has_status and not kind.custom and kind.kind not in _KEEPS_STATUS:
        shape = shape_of(kind.api_version, kind.kind)
        if shape is not None and "status" in shape.below:
            obj["status"] = zero_value(shape.below["status"])
    prepare = _CREATE.get((kind.group, kind.kind))
    if prepare is not None:
        prepare(obj)


def prepare_update(new: Obj, old: Obj, kind: Kind) -> None:
    """An update of the main resource: what only other ways may change is as it was."""
    if kind.has_status:
        new.pop("status", None)
        if "status" in old:
            new["status"] = old["status"]
    prepare = _UPDATE.get((kind.group, kind.kind))
    if prepare is not None:
        prepare(new, old)


def prepare_status_update(new: Obj, old: Obj, kind: Kind) -> None:
    """An update of the status subresource: everything but status and metadata is as it was."""
    for key in new.keys() | old.keys():
        if key not in ("metadata", "status"):
            if key in old:
                new[key] = old[key]
            else:
                del new[key]
    if (kind.group, kind.kind) == ("", "Pod"):
        prepare_pods.pod_status_update(new, old)


def _namespace(obj: Obj) -> None:
    finalizers: list[str] = obj["spec"].setdefault("finalizers", [])
    if "kubernetes" not in finalizers:
        finalizers.append("kubernetes")
    obj["status"] = {"phase": "Active"}


def _namespace_update(new: Obj, old: Obj) -> None:
    new["spec"].pop("finalizers", None)
    if "finalizers" in old["spec"]:
        new["spec"]["finalizers"] = old["spec"]["finalizers"]
    new["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = new["metadata"][
        "name"
    ]


def _persistent_volume(obj: Obj) -> None:
    since = obj["metadata"].get("creationTimestamp")
    obj["status"] = {"phase": "Pending"} | ({"lastPhaseTransitionTime": since} if since else {})


def _claim(obj: Obj) -> None:
    obj["status"] = {"phase": "Pending"}
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


def _custom_resource_definition(obj: Obj) -> None:
    _stored_versions(obj, [])


def _custom_resource_definition_update(new: Obj, old: Obj) -> None:
    _stored_versions(new, old["status"].get("storedVersions", []))


def _stored_versions(obj: Obj, before: list[str]) -> None:
    now = [version["name"] for version in obj["spec"].get("versions", ()) if version["storage"]]
    stored = [*before, *(name for name in now[:1] if name not in before)]
    if stored:
        obj["status"] = obj["status"] | {"storedVersions": stored}


_CREATE: Mapping[tuple[str, str], Callable[[Obj], None]] = {
    ("", "Pod"): prepare_pods.pod,
    ("", "Namespace"): _namespace,
    ("", "PersistentVolume"): _persistent_volume,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "Service"): prepare_service.service,
    ("", "ServiceAccount"): _service_account,
    ("apps", "DaemonSet"): _daemon_set,
    ("batch", "Job"): prepare_batch.job,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _custom_resource_definition,
}
_UPDATE: Mapping[tuple[str, str], Callable[[Obj, Obj], None]] = {
    ("", "Namespace"): _namespace_update,
    ("", "PersistentVolumeClaim"): _claim_update,
    ("", "Service"): prepare_service.service_update,
    ("", "ServiceAccount"): lambda new, old: _service_account(new),
    ("apps", "DaemonSet"): _daemon_set_update,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _custom_resource_definition_update,
}
