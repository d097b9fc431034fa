"""Pods: create, update and status; and templates of pods."""

import orjson

from kubeclient.objects import Obj
from localkube.apiserver.defaults.pod_resources import qos_class
from localkube.apiserver.validation.affinity import tolerations
from localkube.apiserver.validation.containers import padded_image
from localkube.apiserver.validation.errors import (
    Errors,
    difference,
    forbidden_field,
    in_range,
    invalid,
    required,
)
from localkube.apiserver.validation.formats import dns_subdomain
from localkube.apiserver.validation.metadata import (
    annotations,
    labels,
    own_meta,
    own_meta_update,
)
from localkube.apiserver.validation.pod_annotations import (
    pod_annotations,
    pod_annotations_update,
)
from localkube.apiserver.validation.pod_spec import MIRROR, pod_spec

_MAY_CHANGE = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions"
    " to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it"
    " was previously negative)\n"
)
# Specs without a fault, as bytes.
_GOOD_SPECS: set[bytes] = set()
_GOOD_SPECS_KEPT = 2_000
_GOOD_SPEC_BYTES = 16 * 1024  # a client that sends huge ones must not fill the memory

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def create(obj: Obj) -> Errors:
    errors: Errors = []
    metadata, spec = obj["metadata"], obj["spec"]
    _metadata_and_spec(errors, metadata, spec)
    if "ephemeralContainers" in spec:
        errors.append(forbidden_field("spec.ephemeralContainers", "cannot be set on create"))
    if "nodeName" in spec and "schedulingGates" in spec:
        what = "cannot be set until all schedulingGates have been cleared"
        errors.append(forbidden_field("spec.nodeName", what))
    return errors


def update(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    own_meta_update(errors, new["metadata"], old["metadata"])
    _metadata_and_spec(errors, new["metadata"], new["spec"])
    pod_annotations_update(errors, new, old)
    _spec_update(errors, new["spec"], old["spec"])
    return errors


def ephemeral_update(new: Obj, old: Obj) -> Errors:
    """Through pods/ephemeralcontainers: nothing but new ephemeral containers."""
    errors: Errors = []
    own_meta_update(errors, new["metadata"], old["metadata"])
    _metadata_and_spec(errors, new["metadata"], new["spec"])
    pod_annotations_update(errors, new, old)
    if MIRROR in old["metadata"].get("annotations", {}):
        return [forbidden_field("", "static pods do not support ephemeral containers")]
    path = "spec.ephemeralContainers"
    now = {one["name"]: one for one in new["spec"].get("ephemeralContainers", ())}
    for one in old["spec"].get("ephemeralContainers", ()):
        name = one["name"]
        if name not in now:
            what = f'existing ephemeral containers "{name}" may not be removed\n'
            errors.append(forbidden_field(path, what))
        elif now[name] != one:
            changes = difference(one, now[name])
            what = f'existing ephemeral containers "{name}" may not be changed\n{changes}'
            errors.append(forbidden_field(path, what))
    return errors


def resize_update(new: Obj, old: Obj) -> Errors:
    """Through pods/resize, which has let nothing but resources through."""
    errors: Errors = []
    own_meta_update(errors, new["metadata"], old["metadata"])
    _metadata_and_spec(errors, new["metadata"], new["spec"])
    before = qos_class(old["spec"])
    if not errors and qos_class(new["spec"]) != before:
        what = "Pod QOS Class may not change as a result of resizing"
        errors.append(invalid("spec", before, what))
    if _other_resources(new["spec"]) != _other_resources(old["spec"]):
        errors.append(forbidden_field("spec", "only cpu and memory resources are mutable"))
    return errors


def _other_resources(spec: Obj) -> list[dict[tuple[str, str], str]]:
    """What containers ask for besides CPU and memory: devices cannot be resized in place."""
    return [
        {
            (part, name): amount
            for part in ("requests", "limits")
            for name, amount in (container["resources"].get(part) or {}).items()
            if name not in ("cpu", "memory")
        }
        for container in spec["containers"]
    ]


def template(errors: Errors, value: Obj, path: str) -> None:
    """A pod template inside another kind."""
    metadata, spec = value["metadata"], value["spec"]
    labels(errors, metadata.get("labels", {}), f"{path}.labels")
    annotations(errors, metadata.get("annotations", {}), f"{path}.annotations")
    pod_annotations(errors, metadata, spec, f"{path}.annotations")
    pod_spec(errors, spec, None, f"{path}.spec")
    if "ephemeralContainers" in spec:
        what = "ephemeral containers not allowed in pod template"
        errors.append(forbidden_field(f"{path}.spec.ephemeralContainers", what))


def create_template(obj: Obj) -> Errors:
    errors: Errors = []
    own_meta(errors, obj["metadata"], dns_subdomain)
    template(errors, obj["template"], "template")
    return errors


def update_template(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    own_meta_update(errors, new["metadata"], old["metadata"])
    template(errors, new["template"], "template")
    return errors


def _metadata_and_spec(errors: Errors, metadata: Obj, spec: Obj) -> None:
    own_meta(errors, metadata, dns_subdomain)
    pod_annotations(errors, metadata, spec, "metadata.annotations")
    # Pods of one template are alike but for their names: what was right once is right again.
    key = orjson.dumps(spec)
    if key in _GOOD_SPECS:
        return
    before = len(errors)
    pod_spec(errors, spec, metadata, "spec")
    if "serviceAccountName" not in spec:
        _no_tokens(errors, spec)
    for group in ("containers", "initContainers"):
        for place, container in enumerate(spec.get(group, ())):
            padded_image(errors, container, f"spec.{group}[{place}]")
    if len(errors) == before and len(key) <= _GOOD_SPEC_BYTES and not _depends_on_pod(spec):
        if len(_GOOD_SPECS) >= _GOOD_SPECS_KEPT:
            _GOOD_SPECS.clear()
        _GOOD_SPECS.add(key)


def _depends_on_pod(spec: Obj) -> bool:
    """Claims are named after their pod, and mirror pods may have none."""
    return "resourceClaims" in spec or any("ephemeral" in v for v in spec.get("volumes", ()))


def _no_tokens(errors: Errors, spec: Obj) -> None:
    for place, volume in enumerate(spec.get("volumes", ())):
        for number, source in enumerate(volume.get("projected", {}).get("sources", ())):
            if "serviceAccountToken" in source:
                path = f"spec.volumes[{place}].projected.sources[{number}].serviceAccountToken"
                what = "must not be specified when serviceAccountName is not set"
                errors.append(forbidden_field(path, what))


def _spec_update(errors: Errors, new: Obj, old: Obj) -> None:
    for group in ("containers", "initContainers"):
        if not _same_containers(errors, new.get(group, []), old.get(group, []), f"spec.{group}"):
            return
    if not _deadline(errors, new, old):
        return
    _only_more_tolerations(errors, new.get("tolerations", []), old.get("tolerations", []))
    _only_fewer_gates(errors, new.get("schedulingGates", []), old.get("schedulingGates", []))
    if new == old:
        return
    munged = _munged(new, old)
    if "schedulingGates" in old:
        _gated(errors, munged, old)
    if munged != old:
        changes = difference(old, munged)
        errors.append(forbidden_field("spec", f"{_MAY_CHANGE}{changes}"))


def _same_containers(errors: Errors, new: list[Obj], old: list[Obj], path: str) -> bool:
    if len(new) != len(old):
        errors.append(forbidden_field(path, "pod updates may not add or remove containers"))
        return False
    for place, container in enumerate(new):
        if not container.get("image"):
            errors.append(required(f"{path}[{place}].image"))
        padded_image(errors, container, f"{path}[{place}]")
    return True


def _deadline(errors: Errors, new: Obj, old: Obj) -> bool:
    path, after, before = (
        "spec.activeDeadlineSeconds",
        new.get("activeDeadlineSeconds"),
        old.get("activeDeadlineSeconds"),
    )
    if after is None:
        if before is not None:
            what = "must not update from a positive integer to nil value"
            errors.append(invalid(path, after, what))
        return True
    if not 0 <= after < 2**31:
        errors.append(invalid(path, after, in_range(0, 2**31 - 1)))
        return False
    if before is not None and before < after:
        errors.append(invalid(path, after, "must be less than or equal to previous value"))
        return False
    return True


def _only_more_tolerations(errors: Errors, new: list[Obj], old: list[Obj]) -> None:
    if new == old:
        kept = True
    else:
        after = [_without_seconds(toleration) for toleration in new]
        kept = all(_without_seconds(toleration) in after for toleration in old)
    if kept:
        tolerations(errors, new, "spec.tolerations")
    else:
        what = "existing toleration can not be modified except its tolerationSeconds"
        errors.append(forbidden_field("spec.tolerations", what))


def _without_seconds(toleration: Obj) -> Obj:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _only_fewer_gates(errors: Errors, new: list[Obj], old: list[Obj]) -> None:
    before = {gate["name"] for gate in old}
    for place, gate in enumerate(new):
        if gate["name"] not in before:
            what = f"only deletion is allowed, but found new scheduling gate '{gate['name']}'"
            errors.append(forbidden_field(f"spec.schedulingGates[{place}].name", what))


def _munged(new: Obj, old: Obj) -> Obj:
    """The new spec with every field that may change set back to its old value."""
    munged = dict(new)
    for group in ("containers", "initContainers"):
        if group in new:
            pairs = zip(new[group], old[group], strict=True)
            munged[group] = [now | {"image": was.get("image")} for now, was in pairs]
    for name in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        munged.pop(name, None)
        if name in old:
            munged[name] = old[name]
    return munged


def _gated(errors: Errors, munged: Obj, old: Obj) -> None:
    """A pod with scheduling gates may have its node selector and affinity narrowed."""
    if munged.get("nodeSelector") != old.get("nodeSelector"):
        after, before = munged.get("nodeSelector", {}), old.get("nodeSelector", {})
        if any(after.get(key) != value for key, value in before.items()):
            what = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            errors.append(invalid("spec.nodeSelector", after or None, what))
        _restore(munged, old, "nodeSelector")
    after, before = (spec.get("affinity", {}).get("nodeAffinity") for spec in (munged, old))
    if after != before:
        _narrowed(errors, after or {}, before or {})
        affinity = {
            key: value for key, value in munged.get("affinity", {}).items() if key != "nodeAffinity"
        }
        if before is not None:
            affinity["nodeAffinity"] = before
        if affinity or "affinity" in old:
            munged["affinity"] = affinity
        else:
            munged.pop("affinity", None)


def _narrowed(errors: Errors, new: Obj, old: Obj) -> None:
    before = old.get(_REQUIRED, {}).get("nodeSelectorTerms", [])
    after = new.get(_REQUIRED, {}).get("nodeSelectorTerms", [])
    path = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    if before and len(before) != len(after):
        what = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        errors.append(invalid(path, after or None, what))
        return
    for place, (now, was) in enumerate(zip(after, before, strict=False)):
        if not _only_adds(now, was):
            what = "only additions are allowed (no mutations or deletions)"
            errors.append(invalid(f"{path}[{place}]", now, what))


def _only_adds(new: Obj, old: Obj) -> bool:
    if not old:
        return not new
    return all(
        new.get(name, [])[: len(old.get(name, []))] == old.get(name, [])
        for name in ("matchExpressions", "matchFields")
    )


def _restore(value: Obj, old: Obj, name: str) -> None:
    value.pop(name, None)
    if name in old:
        value[name] = old[name]
