"""APIServices: which group version is answered by whom."""

from kubeclient.objects import Obj
from localkube.apiserver.validation.errors import (
    Errors,
    invalid,
    invalid_each,
    not_supported,
    required,
)
from localkube.apiserver.validation.formats import (
    dns_1035_label,
    dns_subdomain,
    path_segment,
    port_number,
)
from localkube.apiserver.validation.metadata import object_meta, object_meta_update
from localkube.signing_requests import decoded

_STATUSES = ("True", "False", "Unknown")
_MOST_GROUP_PRIORITY = 20_000
_MOST_VERSION_PRIORITY = 1000


def create(obj: Obj) -> Errors:
    errors: Errors = []
    spec = obj["spec"]
    group, version = spec.get("group", ""), spec.get("version", "")
    named = f"{version}.{group}"

    def own_name(name: str) -> tuple[str, ...]:
        found = tuple(path_segment(name))
        if found or name == named:
            return found
        return (f'must be `spec.version+"."+spec.group`: "{named}"',)

    object_meta(errors, obj["metadata"], own_name, namespaced=False)
    if not group and version != "v1":
        text = "only v1 may have an empty group and it better be legacy kube"
        errors.append(required("spec.group", text))
    if group:
        invalid_each(errors, "spec.group", group, dns_subdomain(group))
    invalid_each(errors, "spec.version", version, dns_1035_label(version))
    _priority(errors, spec, "groupPriorityMinimum", _MOST_GROUP_PRIORITY)
    _priority(errors, spec, "versionPriority", _MOST_VERSION_PRIORITY)
    if "service" in spec:
        _service(errors, spec)
    else:
        _local(errors, spec)
    return errors


def update(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    object_meta_update(errors, new["metadata"], old["metadata"])
    return errors + create(new)


def status_update(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    object_meta_update(errors, new["metadata"], old["metadata"])
    for place, condition in enumerate((new.get("status") or {}).get("conditions", ())):
        if condition["status"] not in _STATUSES:
            at = f"status.conditions[{place}].status"
            errors.append(not_supported(at, condition["status"], _STATUSES))
    return errors


def _priority(errors: Errors, spec: Obj, field: str, most: int) -> None:
    if not 0 < spec[field] <= most:
        text = f"must be positive and less than {most}"
        errors.append(invalid(f"spec.{field}", spec[field], text))


def _local(errors: Errors, spec: Obj) -> None:
    if "caBundle" in spec:
        found = f"{len(decoded(spec['caBundle']))} bytes"
        text = "local APIServices may not have a caBundle"
        errors.append(invalid("spec.caBundle", found, text))
    if spec.get("insecureSkipTLSVerify"):
        text = "local APIServices may not have insecureSkipTLSVerify"
        errors.append(invalid("spec.insecureSkipTLSVerify", True, text))


def _service(errors: Errors, spec: Obj) -> None:
    service = spec["service"]
    for field in ("namespace", "name"):
        if not service.get(field):
            errors.append(required(f"spec.service.{field}"))
    complaints = port_number(service["port"])
    if complaints:
        text = f"port is not valid: {', '.join(complaints)}"
        errors.append(invalid("spec.service.port", service["port"], text))
    if spec.get("insecureSkipTLSVerify") and "caBundle" in spec:
        text = "may not be true if caBundle is present"
        errors.append(invalid("spec.insecureSkipTLSVerify", True, text))
