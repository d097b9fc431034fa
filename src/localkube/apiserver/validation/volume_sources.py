"""The rules of each volume source that a pod or a PersistentVolume may name.

Sources of storage vendors have no rules here: no kubelet of ours can mount them, so that the types
and names of their fields, which the schema checks, are all that is checked.
"""

from collections.abc import Callable, Mapping
from typing import Any

from kubeclient import quantity
from kubeclient.objects import Obj
from localkube.apiserver.validation.claims import claim_template
from localkube.apiserver.validation.environment import field_ref, resource_field_ref
from localkube.apiserver.validation.errors import (
    Errors,
    forbidden_field,
    invalid,
    invalid_each,
    not_supported,
    required,
    too_long,
)
from localkube.apiserver.validation.formats import dns_subdomain, size
from localkube.apiserver.validation.paths import (
    MODE,
    is_mode,
    no_backsteps,
    not_reserved,
)

Rule = Callable[[Errors, Obj, str], None]

_DOWNWARD_FIELDS = tuple(
    f"metadata.{name}" for name in ("annotations", "labels", "name", "namespace", "uid")
)
_HOST_PATH_TYPES = (
    *("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File"),
    *("FileOrCreate", "Socket"),
)
_CSI_NAME_MAX = 63
_TOKEN_LEAST_SECONDS = 600


# In pods and in PersistentVolumes alike.
OF_VENDORS = (
    *("awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "fc", "flexVolume"),
    *("flocker", "gcePersistentDisk", "glusterfs", "iscsi", "photonPersistentDisk"),
    *("portworxVolume", "quobyte", "rbd", "scaleIO", "storageos", "vsphereVolume"),
)


def schema_alone(errors: Errors, source: Obj, path: str) -> None:
    """Nothing beyond the schema is asked of the source."""


def needs(*names: str) -> Rule:
    def rule(errors: Errors, source: Obj, path: str) -> None:
        for name in names:
            if not source.get(name):
                errors.append(required(f"{path}.{name}"))

    return rule


def empty_dir(errors: Errors, source: Obj, path: str) -> None:
    limit = source.get("sizeLimit")
    if limit is not None and quantity.parse(limit).nanos < 0:
        what = "SizeLimit field must be a valid resource quantity"
        errors.append(forbidden_field(f"{path}.sizeLimit", what))


def host_path(errors: Errors, source: Obj, path: str) -> None:
    if not source["path"]:
        errors.append(required(f"{path}.path"))
        return
    no_backsteps(errors, source["path"], f"{path}.path")
    kind = source.get("type", "")
    if kind not in _HOST_PATH_TYPES:
        errors.append(not_supported(f"{path}.type", kind, _HOST_PATH_TYPES))


def secret(errors: Errors, source: Obj, path: str) -> None:
    if not source.get("secretName"):
        errors.append(required(f"{path}.secretName"))
    _mode(errors, source, "defaultMode", path)
    _items(errors, source, path)


def config_map(errors: Errors, source: Obj, path: str) -> None:
    if not source.get("name"):
        errors.append(required(f"{path}.name"))
    _mode(errors, source, "defaultMode", path)
    _items(errors, source, path)


def nfs(errors: Errors, source: Obj, path: str) -> None:
    needs("server", "path")(errors, source, path)
    if not source["path"].startswith("/"):
        errors.append(invalid(f"{path}.path", source["path"], "must be an absolute path"))


def downward_api(errors: Errors, source: Obj, path: str) -> None:
    _mode(errors, source, "defaultMode", path)
    for file in source.get("items", ()):
        _downward_file(errors, file, path)


def csi(errors: Errors, source: Obj, path: str) -> None:
    csi_driver_name(errors, source["driver"], f"{path}.driver")
    if "nodePublishSecretRef" in source:
        name = source["nodePublishSecretRef"].get("name", "")
        if not name:
            errors.append(required(f"{path}.nodePublishSecretRef.name"))
        else:
            invalid_each(errors, f"{path}.name", name, dns_subdomain(name))


def csi_driver_name(errors: Errors, name: str, path: str) -> None:
    if not name:
        errors.append(required(path))
        return
    if size(name) > _CSI_NAME_MAX:
        errors.append(too_long(path, _CSI_NAME_MAX))
    invalid_each(errors, path, name, dns_subdomain(name.lower()))


def ephemeral(errors: Errors, source: Obj, path: str) -> None:
    if "volumeClaimTemplate" not in source:
        errors.append(required(f"{path}.volumeClaimTemplate"))
    else:
        claim_template(errors, source["volumeClaimTemplate"], f"{path}.volumeClaimTemplate")


def image(errors: Errors, source: Obj, path: str) -> None:
    pull_policy(errors, source["pullPolicy"], f"{path}.pullPolicy")


def pull_policy(errors: Errors, policy: str, path: str) -> None:
    policies = ("Always", "IfNotPresent", "Never")
    if policy not in policies:
        errors.append(not_supported(path, policy, policies))


def projected(errors: Errors, source: Obj, path: str) -> None:
    _mode(errors, source, "defaultMode", path)
    seen: set[str] = set()
    for place, part in enumerate(source.get("sources", ())):
        at = f"{path}.sources[{place}]"
        found = [name for name in _PROJECTIONS if name in part]
        for name in found:
            _PROJECTIONS[name](errors, part[name], f"{at}.{name}", path, seen)
        if len(found) > 1:
            what = "may not specify more than 1 volume type per source"
            errors.append(forbidden_field(at, what))


def _projected_items(errors: Errors, part: Obj, at: str, whole: str, seen: set[str]) -> None:
    if not part.get("name"):
        errors.append(required(f"{at}.name"))
    for place, item in enumerate(part.get("items", ())):
        _key_to_path(errors, item, f"{at}.items[{place}]")
        _unique_path(errors, item["path"], part.get("name", ""), whole, seen)


def _projected_fields(errors: Errors, part: Obj, at: str, whole: str, seen: set[str]) -> None:
    for file in part.get("items", ()):
        _downward_file(errors, file, at)
        _unique_path(errors, file["path"], file["path"], whole, seen)


def _projected_token(errors: Errors, part: Obj, at: str, whole: str, seen: set[str]) -> None:
    seconds = part["expirationSeconds"]
    if seconds < _TOKEN_LEAST_SECONDS:
        what = "may not specify a duration less than 10 minutes"
        errors.append(invalid(f"{at}.expirationSeconds", seconds, what))
    if seconds > 1 << 32:
        what = "may not specify a duration larger than 2^32 seconds"
        errors.append(invalid(f"{at}.expirationSeconds", seconds, what))
    if not part["path"]:
        errors.append(required(f"{whole}.path"))
    else:
        not_reserved(errors, part["path"], f"{whole}.path")


def _unique_path(errors: Errors, path: str, shown: str, whole: str, seen: set[str]) -> None:
    if path and path in seen:
        errors.append(invalid(whole, shown, "conflicting duplicate paths"))
    seen.add(path)


def _downward_file(errors: Errors, file: Obj, path: str) -> None:
    if not file["path"]:
        errors.append(required(f"{path}.path"))
    not_reserved(errors, file["path"], f"{path}.path")
    if "fieldRef" in file:
        field_ref(errors, file["fieldRef"], _DOWNWARD_FIELDS, f"{path}.fieldRef")
        if "resourceFieldRef" in file:
            what = "fieldRef and resourceFieldRef can not be specified simultaneously"
            errors.append(invalid(path, "resource", what))
    elif "resourceFieldRef" in file:
        at = f"{path}.resourceFieldRef"
        resource_field_ref(errors, file["resourceFieldRef"], at, needs_container=True)
    else:
        errors.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    _mode(errors, file, "mode", path)


def _items(errors: Errors, source: Obj, path: str) -> None:
    for place, item in enumerate(source.get("items", ())):
        _key_to_path(errors, item, f"{path}.items[{place}]")


def _key_to_path(errors: Errors, item: Obj, path: str) -> None:
    needs("key", "path")(errors, item, path)
    not_reserved(errors, item["path"], f"{path}.path")
    _mode(errors, item, "mode", path)


def _mode(errors: Errors, holder: Obj, name: str, path: str) -> None:
    mode = holder.get(name)
    if mode is not None and not is_mode(mode):
        errors.append(invalid(f"{path}.{name}", mode, MODE))


_PROJECTIONS: Mapping[str, Callable[[Errors, Any, str, str, set[str]], None]] = {
    "secret": _projected_items,
    "configMap": _projected_items,
    "downwardAPI": _projected_fields,
    "serviceAccountToken": _projected_token,
}
