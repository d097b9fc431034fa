"""What was given to a claim, by whom it is used, and how its devices are."""

import ipaddress
import re
from functools import partial
from typing import TypeAlias

from kubeclient.objects import Obj
from localkube.apiserver.validation.addresses import is_cidr, parsed_ip
from localkube.apiserver.validation.affinity import node_selector
from localkube.apiserver.validation.conditions import conditions
from localkube.apiserver.validation.devices import (
    binding_conditions,
    configuration,
    device_name,
    distinct,
    driver_name,
    each,
    pool_name,
    raw_object,
)
from localkube.apiserver.validation.errors import (
    IMMUTABLE,
    Errors,
    Printed,
    forbidden_field,
    go_json,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)
from localkube.apiserver.validation.formats import size
from localkube.apiserver.validation.internal import printed
from localkube.apiserver.validation.metadata import own_meta_update
from localkube.apiserver.validation.resource_claims import (
    CONFIG_MAX,
    REQUESTS_MAX,
    RequestNames,
    request_names,
    request_ref,
    requests_of,
)

# Driver, pool, device, and the part of it that is shared.
DeviceId: TypeAlias = tuple[str, str, str, str]

_USERS_MAX = 256
_CONDITIONS_MAX = 8
_INTERFACE_NAME_MAX = 256
_HARDWARE_ADDRESS_MAX = 128
_IPS_MAX = 16
_SOURCES = ("FromClaim", "FromClass")
_HEX = "[0-9a-fA-F]"
_is_uuid = re.compile(rf"{_HEX}{{8}}(-{_HEX}{{4}}){{3}}-{_HEX}{{12}}").fullmatch


def status_update(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    own_meta_update(errors, new["metadata"], old["metadata"])
    status, before = new["status"], old["status"]
    users = status.get("reservedFor", [])
    if each(errors, users, _USERS_MAX, _user, "status.reservedFor"):
        distinct(errors, (user.get("uid", "") for user in users), "status.reservedFor")
    _devices(errors, status)
    if users and "allocation" not in status:
        what = "may not be specified when `allocated` is not set"
        errors.append(forbidden_field("status.reservedFor", what))
    elif "deletionTimestamp" in new["metadata"]:
        _no_new_users(errors, users, before.get("reservedFor", []))
    _allocation(errors, new, before.get("allocation"))
    return errors


def device_id(device: Obj) -> DeviceId:
    return (
        device.get("driver", ""),
        device.get("pool", ""),
        device.get("device", ""),
        device.get("shareID", ""),
    )


def _user(errors: Errors, user: Obj, path: str) -> None:
    for name in ("resource", "name", "uid"):
        if not user.get(name):
            errors.append(required(f"{path}.{name}"))


def _no_new_users(errors: Errors, users: list[Obj], before: list[Obj]) -> None:
    if any(user not in before for user in users):
        what = (
            "new entries may not be added while `deallocationRequested` or `deletionTimestamp`"
            " are set"
        )
        errors.append(forbidden_field("status.reservedFor", what))


def _allocation(errors: Errors, claim: Obj, before: Obj | None) -> None:
    allocation = claim["status"].get("allocation")
    path = "status.allocation"
    if allocation is None:
        return
    if before is not None:
        if allocation != before:
            shown = printed(allocation, "resource.AllocationResult")
            errors.append(invalid(path, shown, IMMUTABLE))
        return
    names = request_names(claim["spec"]["devices"])
    given = allocation["devices"]
    check = partial(_result, names=names)
    each(errors, given.get("results", []), REQUESTS_MAX, check, f"{path}.devices.results")
    check = partial(_configuration, names=names)
    each(errors, given.get("config", []), 2 * CONFIG_MAX, check, f"{path}.devices.config")
    if "nodeSelector" in allocation:
        node_selector(errors, allocation["nodeSelector"], f"{path}.nodeSelector")


def _result(errors: Errors, result: Obj, path: str, *, names: RequestNames) -> None:
    request_ref(errors, result["request"], f"{path}.request", names=names)
    _device_names(errors, result, path)
    binding_conditions(errors, result, path)
    _share(errors, result, path)


def _device_names(errors: Errors, device: Obj, path: str) -> None:
    driver_name(errors, device["driver"], f"{path}.driver")
    pool_name(errors, device["pool"], f"{path}.pool")
    device_name(errors, device["device"], f"{path}.device")


def _share(errors: Errors, device: Obj, path: str) -> None:
    share = device.get("shareID")
    if share is None:
        return
    if not _is_uuid(share):
        why = f"length: {size(share)}" if size(share) != 36 else "format"
        what = f"error validating uid: invalid UUID {why}"
        errors.append(invalid(f"{path}.shareID", share, what))
    elif share != share.lower():
        what = (
            "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with"
            " lowercase hexadecimal characters"
        )
        errors.append(invalid(f"{path}.shareID", share, what))


def _configuration(errors: Errors, config: Obj, path: str, *, names: RequestNames) -> None:
    source = config["source"]
    if not source:
        errors.append(required(f"{path}.source"))
    elif source not in _SOURCES:
        errors.append(not_supported(f"{path}.source", source, _SOURCES))
    requests_of(errors, config, names, path)
    configuration(errors, config, path)


def _devices(errors: Errors, status: Obj) -> None:
    allocation = status.get("allocation")
    results = allocation["devices"].get("results", ()) if allocation else ()
    given = {device_id(result) for result in results}
    path = "status.devices"
    devices = status.get("devices", [])
    for place, device in enumerate(devices):
        _device(errors, device, given, f"{path}[{place}]")
    distinct(errors, (_printed_id(device) for device in devices), path)


def _printed_id(device: Obj) -> Printed:
    names = ("Driver", "Pool", "Device", "ShareID")
    parts = (f'"{n}":{go_json(v)}' for n, v in zip(names, device_id(device), strict=True))
    return Printed(f"{{{','.join(parts)}}}")


def _device(errors: Errors, device: Obj, given: set[DeviceId], path: str) -> None:
    _device_names(errors, device, path)
    _share(errors, device, path)
    if device_id(device) not in given:
        what = "must be an allocated device in the claim"
        errors.append(invalid(path, _printed_id(device), what))
    listed = device.get("conditions", [])
    if len(listed) > _CONDITIONS_MAX:
        errors.append(too_many(f"{path}.conditions", len(listed), _CONDITIONS_MAX))
    conditions(errors, listed, f"{path}.conditions")
    if device.get("data") is not None:
        raw_object(errors, device["data"], f"{path}.data")
    if "networkData" in device:
        _network(errors, device["networkData"], f"{path}.networkData")


def _network(errors: Errors, network: Obj, path: str) -> None:
    limits = {"interfaceName": _INTERFACE_NAME_MAX, "hardwareAddress": _HARDWARE_ADDRESS_MAX}
    for name, limit in limits.items():
        if size(network.get(name, "")) > limit:
            errors.append(too_long(f"{path}.{name}", limit))
    addresses: list[str] = network.get("ips", [])
    if each(errors, addresses, _IPS_MAX, _interface_address, f"{path}.ips"):
        distinct(errors, addresses, f"{path}.ips")


def _interface_address(errors: Errors, text: str, path: str) -> None:
    if not is_cidr(text):
        what = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
        errors.append(invalid(path, text, what))
        return
    base, _, bits = text.partition("/")
    address, length = parsed_ip(base), int(bits)
    if isinstance(address, ipaddress.IPv4Address) and length > 32:
        length -= 96
    canonical = f"{address}/{length}"
    if text != canonical:
        errors.append(invalid(path, text, f'must be in canonical form ("{canonical}")'))
