"""Fields that the server itself sets on objects of some kinds, between admission and validation.

Examples are a namespace's finalizer, a pod's first status and a Job's selector: kube-apiserver does
this in the "strategy" of each kind. `set_fields_on_create` gets an object whose name, uid and
creationTimestamp are set and whose defaults are applied. `set_fields_on_update` and
`set_fields_on_status_update` get the new object after its status, or all but its status, was taken
from the old one. Cluster IPs, node ports and generations are set elsewhere.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from kubeclient.objects import Obj
from localkube.apiserver.defaults import certificate_fields, service_fields
from localkube.apiserver.defaults.pod_resources import qos_class
from localkube.apiserver.kinds import Kind
from localkube.apiserver.request import User

_SIGNING_REQUEST = ("certificates.k8s.io", "CertificateSigningRequest")
_LOCAL = {
    "type": "Available",
    "status": "True",
    "reason": "Local",
    "message": "Local APIServices are always available",
}
_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


def set_fields_on_create(obj: Obj, kind: Kind, user: User | None = None) -> None:
    """`user`: who makes it."""
    if (kind.group, kind.kind) == _SIGNING_REQUEST:
        certificate_fields.identify(obj, user)
    step = _CREATE.get((kind.group, kind.kind))
    if step is not None:
        step(obj)


def set_fields_on_update(new: Obj, old: Obj, kind: Kind) -> None:
    step = _UPDATE.get((kind.group, kind.kind))
    if step is not None:
        step(new, old)


def set_fields_on_status_update(new: Obj, old: Obj, kind: Kind, stamp: str) -> None:
    """`stamp`: the time now."""
    step = _STATUS.get((kind.group, kind.kind))
    if step is not None:
        step(new, old, stamp)


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
    # As many digits as Go's int64 has.
    is_number = text and text.isascii() and text.isdigit() and len(text) <= 18
    return int(text) if text and is_number else 0


def _custom_resource_definition_update(new: Obj, old: Obj) -> None:
    """storedVersions only grows: objects may still be stored in the older versions."""
    before = old["status"].get("storedVersions", [])
    now = [version["name"] for version in new["spec"].get("versions", ()) if version["storage"]]
    stored = [*before, *(name for name in now[:1] if name not in before)]
    if stored:
        new["status"] = new["status"] | {"storedVersions": stored}


_GATED = {
    "type": "PodScheduled",
    "status": "False",
    "lastProbeTime": None,
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


def _pod(obj: Obj) -> None:
    """A new pod is pending, has a QoS class, and its selectors are completed from its labels."""
    spec: Obj = obj["spec"]
    obj["status"] = {"phase": "Pending", "qosClass": qos_class(spec)}
    if "schedulingGates" in spec:
        since = {"lastTransitionTime": obj["metadata"]["creationTimestamp"]}
        obj["status"]["conditions"] = [_GATED | since]
    if "affinity" in spec or "topologySpreadConstraints" in spec:
        _complete_selectors(spec, obj["metadata"].get("labels", {}))


def _pod_status_update(new: Obj, old: Obj, stamp: str) -> None:
    new["metadata"].pop("ownerReferences", None)
    if "ownerReferences" in old["metadata"]:
        new["metadata"]["ownerReferences"] = old["metadata"]["ownerReferences"]
    before, status = old.get("status", {}), new.setdefault("status", {})
    for name in ("qosClass", "observedGeneration"):
        if name not in status and name in before:
            status[name] = before[name]
    seen: dict[str, list[int]] = {}
    for condition in before.get("conditions", ()):
        seen.setdefault(condition["type"], []).append(condition.get("observedGeneration", 0))
    for condition in status.get("conditions", ()):
        generation = seen.get(condition["type"], [0]).pop(0) if seen.get(condition["type"]) else 0
        if generation and "observedGeneration" not in condition:
            condition["observedGeneration"] = generation


def _complete_selectors(spec: Obj, labels: dict[str, str]) -> None:
    """`matchLabelKeys` become plain requirements, with the pod's own values."""
    for term in _affinity_terms(spec.get("affinity", {})):
        _require(term, term.get("matchLabelKeys", ()), "In", labels)
        _require(term, term.get("mismatchLabelKeys", ()), "NotIn", labels)
    for constraint in spec.get("topologySpreadConstraints", ()):
        _require(constraint, constraint.get("matchLabelKeys", ()), "In", labels)


def _affinity_terms(affinity: Obj) -> Iterator[Obj]:
    for name in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(name, {})
        for weighted in rules.get("preferredDuringSchedulingIgnoredDuringExecution", ()):
            yield weighted["podAffinityTerm"]
        yield from rules.get("requiredDuringSchedulingIgnoredDuringExecution", ())


def _require(term: Obj, keys: Sequence[str], operator: str, labels: dict[str, str]) -> None:
    if "labelSelector" not in term:  # selects nothing, and so it stays
        return
    for key in keys:
        if key in labels:
            requirement = {"key": key, "operator": operator, "values": [labels[key]]}
            term["labelSelector"].setdefault("matchExpressions", []).append(requirement)


def _job(obj: Obj) -> None:
    """A new Job selects its own pods, by its uid."""
    spec, metadata = obj["spec"], obj["metadata"]
    if spec.get("manualSelector"):
        return
    name, uid = metadata.get("name", ""), metadata.get("uid", "")
    labels = spec["template"]["metadata"].setdefault("labels", {})
    for prefix in ("", "batch.kubernetes.io/"):
        labels.setdefault(f"{prefix}job-name", name)
        labels.setdefault(f"{prefix}controller-uid", uid)
    chosen = spec.setdefault("selector", {}).setdefault("matchLabels", {})
    chosen.setdefault("batch.kubernetes.io/controller-uid", uid)
    # A job without labels has its template's: those, too, now that there are some.
    metadata.setdefault("labels", dict(labels))


def _api_service(obj: Obj) -> None:
    """What this server answers itself is available from the first moment."""
    if "service" not in obj["spec"]:
        obj["status"] = {
            "conditions": [_LOCAL | {"lastTransitionTime": obj["metadata"]["creationTimestamp"]}]
        }


_CREATE: Mapping[tuple[str, str], Callable[[Obj], None]] = {
    ("", "Pod"): _pod,
    ("", "Namespace"): _namespace,
    ("", "PersistentVolume"): _persistent_volume,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "Service"): service_fields.service,
    ("", "ServiceAccount"): _service_account,
    ("", "LimitRange"): _limit_range,
    ("apps", "DaemonSet"): _daemon_set,
    ("batch", "Job"): _job,
    ("apiregistration.k8s.io", "APIService"): _api_service,
}
_UPDATE: Mapping[tuple[str, str], Callable[[Obj, Obj], None]] = {
    ("", "Namespace"): _namespace_update,
    ("", "PersistentVolumeClaim"): _claim_update,
    ("", "Service"): service_fields.service_update,
    ("", "ServiceAccount"): lambda new, old: _service_account(new),
    ("apps", "DaemonSet"): _daemon_set_update,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _custom_resource_definition_update,
    _SIGNING_REQUEST: certificate_fields.keep_request,
}
_STATUS: Mapping[tuple[str, str], Callable[[Obj, Obj, str], None]] = {
    ("", "Pod"): _pod_status_update,
    _SIGNING_REQUEST: certificate_fields.keep_decisions,
}
