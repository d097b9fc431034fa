"""CustomResourceDefinitions; what is said of schemas comes from schema/crd_rules.py."""

from kubeclient.objects import Obj
from localkube.apiserver.schema.crd_rules import crd_schema_errors
from localkube.apiserver.validation import crd_versions
from localkube.apiserver.validation.errors import (
    Errors,
    forbidden_field,
    invalid,
    not_supported,
    required,
    unchanged,
)
from localkube.apiserver.validation.formats import (
    Complaints,
    as_prefix,
    dns_1035_label,
    dns_subdomain,
)
from localkube.apiserver.validation.metadata import object_meta, object_meta_update
from localkube.apiserver.validation.webhooks import client_config, review_versions

_APPROVED = "api-approved.kubernetes.io"
_NOT_SAME = "should not be set when strategy is not set to Webhook"


def create(obj: Obj) -> Errors:
    errors: Errors = []
    spec = obj["spec"]
    wanted = f"{spec['names']['plural']}.{spec['group']}"

    def name_check(name: str) -> Complaints:
        rest = () if name == wanted else ('must be spec.names.plural+"."+spec.group',)
        return (*dns_subdomain(as_prefix(name) if name != wanted else name), *rest)

    object_meta(errors, obj["metadata"], name_check, namespaced=False)
    _spec(errors, spec)
    errors += crd_schema_errors(obj)
    _status(errors, obj)
    _approval(errors, obj, None)
    _unknown_fields(errors, spec)
    return errors


def update(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    object_meta_update(errors, new["metadata"], old["metadata"])
    spec, before = new["spec"], old["spec"]
    _spec(errors, spec)
    if spec.get("versions") != before.get("versions"):
        errors += crd_schema_errors(new, old)
    conditions = old.get("status", {}).get("conditions") or ()
    if any(one["type"] == "Established" and one["status"] == "True" for one in conditions):
        unchanged(errors, spec["scope"], before["scope"], "spec.scope")
        unchanged(errors, spec["names"]["kind"], before["names"]["kind"], "spec.names.kind")
    unchanged(errors, spec["group"], before["group"], "spec.group")
    unchanged(errors, spec["names"]["plural"], before["names"]["plural"], "spec.names.plural")
    _status(errors, new)
    _approval(errors, new, old)
    if not before.get("preserveUnknownFields"):
        _unknown_fields(errors, spec)
    return errors


def status_update(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    object_meta_update(errors, new["metadata"], old["metadata"])
    _names(errors, new["status"].get("acceptedNames", {}), "status.acceptedNames")
    return errors


def _spec(errors: Errors, spec: Obj) -> None:
    group = spec["group"]
    if not group:
        errors.append(required("spec.group"))
    elif dns_subdomain(group):
        errors.append(invalid("spec.group", group, ",".join(dns_subdomain(group))))
    elif "." not in group:
        what = "should be a domain with at least one dot"
        errors.append(invalid("spec.group", group, what))
    _one_of(errors, spec["scope"], ("Cluster", "Namespaced"), "spec.scope")
    crd_versions.versions(errors, spec.get("versions", []))
    for name in ("plural", "singular", "kind", "listKind"):
        if not spec["names"].get(name):
            errors.append(required(f"spec.names.{name}"))
    _names(errors, spec["names"], "spec.names")
    crd_versions.common(errors, spec.get("versions", []))
    _conversion(errors, spec["conversion"], "spec.conversion")


def _one_of(errors: Errors, value: str, choices: tuple[str, ...], path: str) -> None:
    if not value:
        errors.append(required(path))
    elif value not in choices:
        errors.append(not_supported(path, value, choices))


def _names(errors: Errors, names: Obj, path: str) -> None:
    for name in ("plural", "singular"):
        if names.get(name):
            _label(errors, names[name], names[name], f"{path}.{name}", "")
    for name in ("kind", "listKind"):
        if names.get(name):
            what = "may have mixed case, but should otherwise match: "
            _label(errors, names[name], names[name].lower(), f"{path}.{name}", what)
    for place, name in enumerate(names.get("shortNames", ())):
        _label(errors, name, name, f"{path}.shortNames[{place}]", "")
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        what = "kind and listKind may not be the same"
        errors.append(invalid(f"{path}.listKind", names["listKind"], what))
    for place, name in enumerate(names.get("categories", ())):
        _label(errors, name, name, f"{path}.categories[{place}]", "")


def _label(errors: Errors, shown: str, name: str, path: str, prefix: str) -> None:
    complaints = dns_1035_label(name)
    if complaints:
        errors.append(invalid(path, shown, f"{prefix}{','.join(complaints)}"))


def _conversion(errors: Errors, conversion: Obj, path: str) -> None:
    _one_of(errors, conversion["strategy"], ("None", "Webhook"), f"{path}.strategy")
    webhook = conversion.get("webhook")
    versions = (webhook or {}).get("conversionReviewVersions", [])
    config = (webhook or {}).get("clientConfig")
    if conversion["strategy"] == "Webhook":
        if config is None:
            what = "required when strategy is set to Webhook"
            errors.append(required(f"{path}.webhookClientConfig", what))
        else:
            client_config(errors, config, f"{path}.webhookClientConfig")
        review_versions(errors, versions, f"{path}.conversionReviewVersions", "")
        return
    if config is not None:
        errors.append(forbidden_field(f"{path}.webhookClientConfig", _NOT_SAME))
    if versions:
        errors.append(forbidden_field(f"{path}.conversionReviewVersions", _NOT_SAME))


def _status(errors: Errors, obj: Obj) -> None:
    status = obj.get("status", {})
    _names(errors, status.get("acceptedNames", {}), "status.acceptedNames")
    path, stored = "status.storedVersions", status.get("storedVersions", [])
    if not stored:
        errors.append(invalid(path, None, "must have at least one stored version"))
        return
    met: set[str] = set()
    for version in obj["spec"].get("versions", ()):
        name = version["name"]
        # Of two versions of one name, the second finds the place taken.
        if version["storage"] and (name not in stored or name in met):
            errors.append(invalid(path, stored, f"must have the storage version {name}"))
        met.add(name)
    for place, name in enumerate(stored):
        if name not in met:
            what = (
                f"missing from spec.versions; {name} was previously a storage version, and must"
                " remain in spec.versions until a storage migration ensures no data remains"
                f" persisted in {name} and removes {name} from status.storedVersions"
            )
            errors.append(invalid(f"{path}[{place}]", name, what))


def _approval(errors: Errors, obj: Obj, old: Obj | None) -> None:
    """CRDs in the domains of Kubernetes itself need an annotation of approval."""
    group = f".{obj['spec']['group']}"
    if not group.endswith((".k8s.io", ".kubernetes.io")):
        return
    text = obj["metadata"].get("annotations", {}).get(_APPROVED, "")
    state = _approved(text)
    if old is not None and state == _approved(
        old["metadata"].get("annotations", {}).get(_APPROVED, "")
    ):
        return
    path = f"metadata.annotations[{_APPROVED}]"
    head = f'protected groups must have approval annotation "{_APPROVED}"'
    tail = "see https://github.com/kubernetes/enhancements/pull/1111"
    if state == "missing":
        errors.append(required(path, f"{head}, {tail}"))
    elif state == "invalid":
        what = f'{head} with either a URL or a reason starting with "unapproved", {tail}'
        errors.append(invalid(path, text, what))


def _approved(text: str) -> str:
    if text.startswith("unapproved"):
        return "bypassed"
    if text.startswith(("https://", "http://")):
        return "approved"
    return "invalid" if text else "missing"


def _unknown_fields(errors: Errors, spec: Obj) -> None:
    if spec.get("preserveUnknownFields"):
        what = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in"
            " spec.versions[*].schema instead"
        )
        errors.append(invalid("spec.preserveUnknownFields", True, what))
