"""Volumes in a container: mounted, or as raw devices."""

from collections.abc import Mapping

from kubeclient.objects import Obj
from localkube.apiserver.validation.errors import (
    Errors,
    forbidden_field,
    invalid,
    not_found,
    not_supported,
    required,
)
from localkube.apiserver.validation.paths import descending

_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE = ("Disabled", "Enabled", "IfPossible")


def mounts(errors: Errors, container: Obj, volumes: Mapping[str, Obj], path: str) -> None:
    seen: set[str] = set()
    as_devices = {one["name"]: one["devicePath"] for one in container.get("volumeDevices", ())}
    for place, mount in enumerate(container["volumeMounts"]):
        name, target = mount["name"], mount["mountPath"]
        if name not in volumes:
            if not name:
                errors.append(required(f"{path}[{place}].name"))
            errors.append(not_found(f"{path}[{place}].name", name))
        if not target:
            errors.append(required(f"{path}[{place}].mountPath"))
        if target in seen:
            errors.append(invalid(f"{path}[{place}].mountPath", target, "must be unique"))
        seen.add(target)
        if as_devices:
            _not_a_device(errors, mount, as_devices, f"{path}[{place}]")
        if len(mount) > (3 if "readOnly" in mount else 2):
            _options(errors, mount, container, path, place)


def devices(errors: Errors, container: Obj, volumes: Mapping[str, Obj], path: str) -> None:
    names: set[str] = set()
    paths: set[str] = set()
    mounted = {one["name"]: one["mountPath"] for one in container.get("volumeMounts", ())}
    for place, device in enumerate(container["volumeDevices"]):
        at, name, target = f"{path}[{place}]", device["name"], device["devicePath"]
        if not name:
            errors.append(required(f"{at}.name"))
        if name in names:
            errors.append(invalid(f"{at}.name", name, "must be unique"))
        _device_volume(errors, name, volumes, at)
        if not target:
            errors.append(required(f"{at}.devicePath"))
        if target in paths:
            errors.append(invalid(f"{at}.devicePath", target, "must be unique"))
        if ".." in target.split("/"):
            what = "can not contain backsteps ('..')"
            errors.append(invalid(f"{at}.devicePath", target, what))
        else:
            paths.add(target)
        if name in mounted:
            errors.append(invalid(f"{at}.name", name, "must not already exist in volumeMounts"))
        if target in mounted.values():
            what = "must not already exist as a path in volumeMounts"
            errors.append(invalid(f"{at}.devicePath", target, what))
        if name:
            names.add(name)


def _not_a_device(errors: Errors, mount: Obj, as_devices: dict[str, str], path: str) -> None:
    if mount["name"] in as_devices:
        what = "must not already exist in volumeDevices"
        errors.append(invalid(f"{path}.name", mount["name"], what))
    if mount["mountPath"] in as_devices.values():
        what = "must not already exist as a path in volumeDevices"
        errors.append(invalid(f"{path}.mountPath", mount["mountPath"], what))


def _options(errors: Errors, mount: Obj, container: Obj, path: str, place: int) -> None:
    """The paths of some of these lack the number of the mount, as they do in Kubernetes."""
    if mount.get("subPath"):
        descending(errors, mount["subPath"], f"{path}.subPath")
    if mount.get("subPathExpr"):
        if mount.get("subPath"):
            what = "subPathExpr and subPath are mutually exclusive"
            errors.append(invalid(f"{path}[{place}].subPathExpr", mount["subPathExpr"], what))
        descending(errors, mount["subPathExpr"], f"{path}.subPathExpr")
    propagation = mount.get("mountPropagation")
    if propagation is not None:
        at = f"{path}.mountPropagation"
        if propagation not in _PROPAGATIONS:
            errors.append(not_supported(at, propagation, _PROPAGATIONS))
        privileged = container.get("securityContext", {}).get("privileged")
        if propagation == "Bidirectional" and not privileged:
            what = "Bidirectional mount propagation is available only to privileged containers"
            errors.append(forbidden_field(at, what))
    if "recursiveReadOnly" in mount:
        _recursive(errors, mount, f"{path}.recursiveReadOnly")


def _recursive(errors: Errors, mount: Obj, path: str) -> None:
    mode = mount["recursiveReadOnly"]
    if mode not in _RECURSIVE:
        errors.append(not_supported(path, mode, _RECURSIVE))
    elif mode != "Disabled":
        if not mount.get("readOnly"):
            errors.append(forbidden_field(path, "may only be specified when readOnly is true"))
        if mount.get("mountPropagation", "None") != "None":
            what = "may only be specified when mountPropagation is None or not specified"
            errors.append(forbidden_field(path, what))


def _device_volume(errors: Errors, name: str, volumes: Mapping[str, Obj], path: str) -> None:
    volume = volumes.get(name)
    if volume is None:
        errors.append(not_found(f"{path}.name", name))
    elif "persistentVolumeClaim" not in volume and "ephemeral" not in volume:
        what = (
            "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
        )
        errors.append(invalid(f"{path}.name", name, what))
