"""Roles and their bindings."""

from kubeclient.objects import Obj
from localkube.apiserver.validation.errors import (
    Errors,
    invalid,
    invalid_each,
    not_supported,
    required,
)
from localkube.apiserver.validation.formats import dns_subdomain, path_segment
from localkube.apiserver.validation.metadata import own_meta, own_meta_update
from localkube.apiserver.validation.selectors import is_usable, label_selector

_GROUP = "rbac.authorization.k8s.io"


def create_role(obj: Obj) -> Errors:
    errors: Errors = []
    own_meta(errors, obj["metadata"], path_segment)
    _rules(errors, obj, namespaced=True)
    return errors


def update_role(new: Obj, old: Obj) -> Errors:
    errors = create_role(new)
    own_meta_update(errors, new["metadata"], old["metadata"])
    return errors


def create_cluster_role(obj: Obj) -> Errors:
    errors: Errors = []
    own_meta(errors, obj["metadata"], path_segment, namespaced=False)
    _rules(errors, obj, namespaced=False)
    if "aggregationRule" in obj:
        path = "aggregationRule.clusterRoleSelectors"
        selectors = obj["aggregationRule"].get("clusterRoleSelectors", ())
        if not selectors:
            what = "at least one clusterRoleSelector required if aggregationRule is non-nil"
            errors.append(required(path, what))
        for place, selector in enumerate(selectors):
            label_selector(errors, selector, f"{path}[{place}]")
            if not is_usable(selector):
                errors.append(invalid(f"{path}[{place}]", None, "invalid label selector."))
    return errors


def update_cluster_role(new: Obj, old: Obj) -> Errors:
    errors = create_cluster_role(new)
    own_meta_update(errors, new["metadata"], old["metadata"])
    return errors


def create_role_binding(obj: Obj) -> Errors:
    return _binding(obj, namespaced=True)


def create_cluster_role_binding(obj: Obj) -> Errors:
    return _binding(obj, namespaced=False)


def update_role_binding(new: Obj, old: Obj) -> Errors:
    return _binding_update(new, old, namespaced=True)


def update_cluster_role_binding(new: Obj, old: Obj) -> Errors:
    return _binding_update(new, old, namespaced=False)


def _rules(errors: Errors, obj: Obj, *, namespaced: bool) -> None:
    for place, rule in enumerate(obj.get("rules", ())):
        _rule(errors, rule, f"rules[{place}]", namespaced=namespaced)


def _rule(errors: Errors, rule: Obj, path: str, *, namespaced: bool) -> None:
    if not rule.get("verbs"):
        errors.append(required(f"{path}.verbs", "verbs must contain at least one value"))
    urls = rule.get("nonResourceURLs")
    if urls:
        at = f"{path}.nonResourceURLs"
        if namespaced:
            what = "namespaced rules cannot apply to non-resource URLs"
            errors.append(invalid(at, urls, what))
        if any(rule.get(name) for name in ("apiGroups", "resources", "resourceNames")):
            what = "rules cannot apply to both regular resources and non-resource URLs"
            errors.append(invalid(at, urls, what))
        return
    if not rule.get("apiGroups"):
        what = "resource rules must supply at least one api group"
        errors.append(required(f"{path}.apiGroups", what))
    if not rule.get("resources"):
        what = "resource rules must supply at least one resource"
        errors.append(required(f"{path}.resources", what))


def _binding(obj: Obj, *, namespaced: bool) -> Errors:
    errors: Errors = []
    own_meta(errors, obj["metadata"], path_segment, namespaced=namespaced)
    role = obj["roleRef"]
    if role["apiGroup"] != _GROUP:
        errors.append(not_supported("roleRef.apiGroup", role["apiGroup"], (_GROUP,)))
    kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    if role["kind"] not in kinds:
        errors.append(not_supported("roleRef.kind", role["kind"], kinds))
    if not role["name"]:
        errors.append(required("roleRef.name"))
    else:
        invalid_each(errors, "roleRef.name", role["name"], path_segment(role["name"]))
    for place, subject in enumerate(obj.get("subjects", ())):
        _subject(errors, subject, f"subjects[{place}]", namespaced=namespaced)
    return errors


def _binding_update(new: Obj, old: Obj, *, namespaced: bool) -> Errors:
    errors = _binding(new, namespaced=namespaced)
    own_meta_update(errors, new["metadata"], old["metadata"])
    if new["roleRef"] != old["roleRef"]:
        errors.append(invalid("roleRef", new["roleRef"], "cannot change roleRef"))
    return errors


def _subject(errors: Errors, subject: Obj, path: str, *, namespaced: bool) -> None:
    name, group = subject["name"], subject.get("apiGroup", "")
    if not name:
        errors.append(required(f"{path}.name"))
    if subject["kind"] == "ServiceAccount":
        if name:
            invalid_each(errors, f"{path}.name", name, dns_subdomain(name))
        if group:
            errors.append(not_supported(f"{path}.apiGroup", group, ("",)))
        if not namespaced and not subject.get("namespace"):
            errors.append(required(f"{path}.namespace"))
    elif subject["kind"] in ("User", "Group"):
        if group != _GROUP:
            errors.append(not_supported(f"{path}.apiGroup", group, (_GROUP,)))
    else:
        kinds = ("ServiceAccount", "User", "Group")
        errors.append(not_supported(f"{path}.kind", subject["kind"], kinds))
