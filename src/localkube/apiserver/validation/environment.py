"""Environment variables of containers, and references to a pod's own fields."""

from collections.abc import Collection

from kubeclient import quantity
from kubeclient.objects import Obj
from localkube.apiserver.validation.errors import (
    Errors,
    invalid,
    invalid_each,
    not_supported,
    required,
)
from localkube.apiserver.validation.formats import (
    config_key,
    dns_label,
    dns_subdomain,
    env_name,
    label_key,
)
from localkube.apiserver.validation.paths import no_backsteps

_FIELDS = (
    *("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName"),
    *("spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP"),
    "status.podIPs",
)
_CONVERTIBLE = frozenset(
    {
        *_FIELDS,
        *("metadata.annotations", "metadata.labels", "spec.restartPolicy", "spec.schedulerName"),
        *("status.phase", "spec.host"),
    }
)
_RESOURCES = (
    *("limits.cpu", "limits.ephemeral-storage", "limits.memory"),
    *("requests.cpu", "requests.ephemeral-storage", "requests.memory"),
)
_HUGE = ("limits.hugepages-", "requests.hugepages-")
_SIZES = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei"
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")


def environment(errors: Errors, container: Obj, path: str) -> None:
    for place, variable in enumerate(container.get("env", ())):
        name = variable["name"]
        if not name:
            errors.append(required(f"{path}.env[{place}].name"))
        elif env_name(name):
            invalid_each(errors, f"{path}.env[{place}].name", name, env_name(name))
        if "valueFrom" in variable:
            _value_from(errors, variable, f"{path}.env[{place}].valueFrom")
    for place, source in enumerate(container.get("envFrom", ())):
        _env_from(errors, source, f"{path}.envFrom", place)


def field_ref(errors: Errors, reference: Obj, fields: Collection[str], path: str) -> None:
    """`fields` sorted: those that can be used here without a subscript."""
    name = reference["fieldPath"]
    if not name:
        errors.append(required(f"{path}.fieldPath"))
        return
    base, key, why = _split(reference["apiVersion"], name)
    if why:
        errors.append(invalid(f"{path}.fieldPath", name, f"error converting fieldPath: {why}"))
    elif key is not None:
        invalid_each(errors, path, key, label_key(key))
    elif base not in fields:
        errors.append(not_supported(f"{path}.fieldPath", base, tuple(fields)))


def resource_field_ref(errors: Errors, reference: Obj, path: str, *, needs_container: bool) -> None:
    name = reference["resource"]
    if needs_container and not reference.get("containerName"):
        errors.append(required(f"{path}.containerName"))
    elif not name:
        errors.append(required(f"{path}.resource"))
    elif name not in _RESOURCES and not name.startswith(_HUGE):
        errors.append(not_supported(f"{path}.resource", name, _RESOURCES))
    _divisor(errors, name, quantity.parse(reference["divisor"]), f"{path}.divisor")


def _split(version: str, name: str) -> tuple[str, str | None, str]:
    """The field, the key in it if one is named, and why it cannot be had."""
    if version != "v1":
        return name, None, f"unsupported pod version: {version}"
    base, bracket, key = name.partition("['")
    if not base or not bracket or not key.endswith("']"):
        why = "" if name in _CONVERTIBLE else f"field label not supported: {name}"
        return "spec.nodeName" if name == "spec.host" else name, None, why
    key = key.removesuffix("']")
    if base == "metadata.labels":
        return base, key, ""
    if base == "metadata.annotations":
        return base, key.lower(), ""
    return base, key, f"field label does not support subscript: {name}"


def _divisor(errors: Errors, name: str, divisor: quantity.Quantity, path: str) -> None:
    if divisor.nanos == 0:
        return
    kind = name.partition(".")[2]
    if kind == "cpu":
        if divisor.text not in ("1m", "1"):
            what = "only divisor's values 1m and 1 are supported with the cpu resource"
            errors.append(invalid(path, name, what))
        return
    called = {"memory": "memory", "ephemeral-storage": "local ephemeral storage"}.get(kind)
    if name.startswith(_HUGE):
        called = "hugepages"
    if called and divisor.text not in _SIZES.split(", "):
        what = f"only divisor's values {_SIZES} are supported with the {called} resource"
        errors.append(invalid(path, name, what))


def _value_from(errors: Errors, variable: Obj, path: str) -> None:
    source = variable["valueFrom"]
    count = 0
    for name in _SOURCES:
        if name in source:
            count += 1
            _source(errors, name, source[name], f"{path}.{name}")
    if count == 0:
        what = (
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`,"
            " `secretKeyRef` or `fileKeyRef`"
        )
        errors.append(invalid(path, "", what))
    elif variable.get("value"):
        errors.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif count > 1:
        errors.append(invalid(path, "", "may not have more than one field specified at a time"))


def _source(errors: Errors, name: str, source: Obj, path: str) -> None:
    match name:
        case "fieldRef":
            field_ref(errors, source, _FIELDS, path)
        case "resourceFieldRef":
            resource_field_ref(errors, source, path, needs_container=False)
        case "fileKeyRef":
            _file_key(errors, source, path)
        case _:
            owner = source.get("name", "")
            invalid_each(errors, f"{path}.name", owner, dns_subdomain(owner))
            if not source["key"]:
                errors.append(required(f"{path}.key"))
            else:
                invalid_each(errors, f"{path}.key", source["key"], config_key(source["key"]))


def _file_key(errors: Errors, source: Obj, path: str) -> None:
    if not source["key"]:
        errors.append(required(f"{path}.key"))
    else:
        invalid_each(errors, f"{path}.key", source["key"], env_name(source["key"]))
    volume = source["volumeName"]
    if not volume:
        errors.append(required(f"{path}.volumeName"))
    else:
        invalid_each(errors, f"{path}.volumeName", volume, dns_label(volume))
    if not source["path"]:
        errors.append(required(f"{path}.path"))
    else:
        no_backsteps(errors, source["path"], f"{path}.path")


def _env_from(errors: Errors, source: Obj, path: str, place: int) -> None:
    prefix = source.get("prefix")
    if prefix:
        invalid_each(errors, f"{path}[{place}].prefix", prefix, env_name(prefix))
    found = [name for name in ("configMapRef", "secretRef") if name in source]
    for name in found:
        owner = source[name].get("name", "")
        if not owner:
            errors.append(required(f"{path}[{place}].{name}.name"))
        else:
            complaints = dns_subdomain(owner)
            invalid_each(errors, f"{path}[{place}].{name}.name", owner, complaints)
    if not found:
        errors.append(invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
    elif len(found) > 1:
        errors.append(invalid(path, "", "may not have more than one field specified at a time"))
