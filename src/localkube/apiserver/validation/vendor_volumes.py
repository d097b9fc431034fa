"""Volume sources of storage systems, old and new. Nothing here mounts them; manifests name them."""

import re

from kubeclient.objects import Obj
from localkube.apiserver.validation.errors import (
    Errors,
    in_range,
    invalid,
    invalid_each,
    not_supported,
    required,
)
from localkube.apiserver.validation.formats import dns_label

_IQN = re.compile(r"iqn\.\d{4}-\d{2}\.([A-Za-z0-9\-.]+)(:[^,;*&$|\s]+)$", re.ASCII)
_EUI = re.compile(r"eui.[A-Za-z0-9]{16}", re.ASCII)
_NAA = re.compile(r"naa.[A-Za-z0-9]{32}", re.ASCII)
_MANAGED_DISK = (
    "/subscriptions/{sub-id}/resourcegroups/{group-name}"
    "/providers/microsoft.compute/disks/{disk-id}"
)
_BLOB_DISK = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"


def partitioned(errors: Errors, source: Obj, name: str, path: str) -> None:
    if not source[name]:
        errors.append(required(f"{path}.{name}"))
    partition = source.get("partition", 0)
    if not 0 <= partition <= 255:
        errors.append(invalid(f"{path}.partition", partition, in_range(1, 255)))


def gce_disk(errors: Errors, source: Obj, path: str) -> None:
    # The path is misspelt in Kubernetes, and clients see it so.
    partitioned(errors, source, "pdName", path.replace("gcePersistentDisk", "persistentDisk"))


def aws_disk(errors: Errors, source: Obj, path: str) -> None:
    partitioned(errors, source, "volumeID", path)


def iscsi(errors: Errors, source: Obj, path: str) -> None:
    if not source["targetPortal"]:
        errors.append(required(f"{path}.targetPortal"))
    if not source["iqn"]:
        errors.append(required(f"{path}.iqn"))
    else:
        _initiator(errors, source["iqn"], f"{path}.iqn")
    if not 0 <= source["lun"] <= 255:
        errors.append(invalid(f"{path}.lun", source["lun"], in_range(0, 255)))
    authenticates = source.get("chapAuthDiscovery") or source.get("chapAuthSession")
    if authenticates and "secretRef" not in source:
        errors.append(required(f"{path}.secretRef"))
    if "initiatorName" in source:
        _initiator(errors, source["initiatorName"], f"{path}.initiatorname")


def fibre_channel(errors: Errors, source: Obj, path: str) -> None:
    names, ids = source.get("targetWWNs"), source.get("wwids")
    if not names and not ids:
        what = "must specify either targetWWNs or wwids, but not both"
        errors.append(required(f"{path}.targetWWNs", what))
    if names and ids:
        what = "targetWWNs and wwids can not be specified simultaneously"
        errors.append(invalid(f"{path}.targetWWNs", names, what))
    if names and "lun" not in source:
        errors.append(required(f"{path}.lun", "lun is required if targetWWNs is specified"))
    elif names and not 0 <= source["lun"] <= 255:
        errors.append(invalid(f"{path}.lun", source["lun"], in_range(0, 255)))


def flocker(errors: Errors, source: Obj, path: str) -> None:
    name, uuid = source.get("datasetName", ""), source.get("datasetUUID", "")
    if not name and not uuid:
        errors.append(required(path, "one of datasetName and datasetUUID is required"))
    if name and uuid:
        what = "datasetName and datasetUUID can not be specified simultaneously"
        errors.append(invalid(path, "resource", what))
    if "/" in name:
        errors.append(invalid(f"{path}.datasetName", name, "must not contain '/'"))


def quobyte(errors: Errors, source: Obj, path: str) -> None:
    pairs = "must be a host:port pair or multiple pairs separated by commas"
    if not source["registry"]:
        errors.append(required(f"{path}.registry", pairs))
    elif len(source.get("tenant", "")) >= 65:
        what = "must be a UUID and may not exceed a length of 64 characters"
        errors.append(required(f"{path}.tenant", what))
    else:
        for pair in source["registry"].split(","):
            if pair.count(":") != 1:
                errors.append(invalid(f"{path}.registry", source["registry"], pairs))
    if not source["volume"]:
        errors.append(required(f"{path}.volume"))


def flex_volume(errors: Errors, source: Obj, path: str) -> None:
    if not source["driver"]:
        errors.append(required(f"{path}.driver"))
    for key in source.get("options", ()):
        domain = f".{key.partition('/')[0].lower()}"
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            what = "kubernetes.io and k8s.io namespaces are reserved"
            errors.append(invalid(f"{path}.options[{key}]", key, what))


def cinder(errors: Errors, source: Obj, path: str) -> None:
    if not source["volumeID"]:
        errors.append(required(f"{path}.volumeID"))
    if "secretRef" in source and not source["secretRef"].get("name"):
        errors.append(required(f"{path}.secretRef.name"))


def azure_disk(errors: Errors, source: Obj, path: str) -> None:
    for name in ("diskName", "diskURI"):
        if not source[name]:
            errors.append(required(f"{path}.{name}"))
    caching = ("None", "ReadOnly", "ReadWrite")
    if source["cachingMode"] not in caching:
        errors.append(not_supported(f"{path}.cachingMode", source["cachingMode"], caching))
    kinds, kind, uri = ("Dedicated", "Managed", "Shared"), source["kind"], source["diskURI"]
    if kind not in kinds:
        errors.append(not_supported(f"{path}.kind", kind, kinds))
    if kind == "Managed" and not uri.startswith("/subscriptions/"):
        errors.append(not_supported(f"{path}.diskURI", uri, (_MANAGED_DISK,)))
    if kind != "Managed" and not uri.startswith("https://"):
        errors.append(not_supported(f"{path}.diskURI", uri, (_BLOB_DISK,)))


def storage_os(errors: Errors, source: Obj, path: str) -> None:
    name, namespace = source.get("volumeName", ""), source.get("volumeNamespace", "")
    if not name:
        errors.append(required(f"{path}.volumeName"))
    else:
        invalid_each(errors, f"{path}.volumeName", name, dns_label(name))
    if namespace:
        invalid_each(errors, f"{path}.volumeNamespace", namespace, dns_label(namespace))
    if "secretRef" in source and not source["secretRef"].get("name"):
        errors.append(required(f"{path}.secretRef.name"))


def _initiator(errors: Errors, name: str, path: str) -> None:
    forms = {"iqn": _IQN.search, "eui": _EUI.match, "naa": _NAA.match}
    matches = forms.get(name[:3])
    if matches is None:
        what = "must be valid format starting with iqn, eui, or naa"
        errors.append(invalid(path, name, what))
    elif not matches(name):
        errors.append(invalid(path, name, "must be valid format"))
