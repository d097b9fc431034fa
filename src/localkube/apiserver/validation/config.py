"""ConfigMaps, Secrets and ServiceAccounts."""

import base64
from collections.abc import Mapping
from typing import Any

import orjson

from kubeclient.objects import Obj
from localkube.apiserver.validation.errors import (
    Errors,
    forbidden_field,
    invalid,
    invalid_each,
    required,
    too_long,
    unchanged,
)
from localkube.apiserver.validation.formats import config_key, dns_subdomain, size
from localkube.apiserver.validation.metadata import own_meta, own_meta_update

_DATA_MAX = 1024 * 1024
_IMMUTABLE = "field is immutable when `immutable` is set"
_ACCOUNT_NAME = "kubernetes.io/service-account.name"
_DOCKER_KEYS = {"dockercfg": ".dockercfg", "dockerconfigjson": ".dockerconfigjson"}


def create_config_map(obj: Obj) -> Errors:
    errors: Errors = []
    own_meta(errors, obj["metadata"], dns_subdomain)
    texts, binaries = obj.get("data", {}), obj.get("binaryData", {})
    total = 0
    for key, value in texts.items():
        invalid_each(errors, f"data[{key}]", key, config_key(key))
        if key in binaries:
            what = "duplicate of key present in binaryData"
            errors.append(invalid(f"data[{key}]", key, what))
        total += size(value)
    for key, value in binaries.items():
        invalid_each(errors, f"binaryData[{key}]", key, config_key(key))
        total += _decoded_size(value)
    if total > _DATA_MAX:
        errors.append(too_long("", _DATA_MAX))
    return errors


def update_config_map(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    own_meta_update(errors, new["metadata"], old["metadata"])
    _frozen(errors, new, old, ("data", "binaryData"))
    return errors + create_config_map(new)


def create_secret(obj: Obj) -> Errors:
    errors: Errors = []
    own_meta(errors, obj["metadata"], dns_subdomain)
    data = obj.get("data", {})
    for key in data:
        invalid_each(errors, f"data[{key}]", key, config_key(key))
    if sum(map(_decoded_size, data.values())) > _DATA_MAX:
        errors.append(too_long("data", _DATA_MAX))
    _secret_type(errors, obj, data)
    return errors


def update_secret(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    own_meta_update(errors, new["metadata"], old["metadata"])
    unchanged(errors, new.get("type", ""), old.get("type", ""), "type")
    _frozen(errors, new, old, ("data",))
    return errors + create_secret(new)


def create_service_account(obj: Obj) -> Errors:
    errors: Errors = []
    own_meta(errors, obj["metadata"], dns_subdomain)
    return errors


def update_service_account(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    own_meta_update(errors, new["metadata"], old["metadata"])
    return errors + create_service_account(new)


def _frozen(errors: Errors, new: Obj, old: Obj, names: tuple[str, ...]) -> None:
    if not old.get("immutable"):
        return
    if not new.get("immutable"):
        errors.append(forbidden_field("immutable", _IMMUTABLE))
    for name in names:
        if new.get(name, {}) != old.get(name, {}):
            errors.append(forbidden_field(name, _IMMUTABLE))


def _secret_type(errors: Errors, obj: Obj, data: Mapping[str, str]) -> None:
    kind = obj.get("type", "").removeprefix("kubernetes.io/")
    if kind == "service-account-token":
        if not obj["metadata"].get("annotations", {}).get(_ACCOUNT_NAME):
            errors.append(required(f"metadata.annotations[{_ACCOUNT_NAME}]"))
    elif kind in _DOCKER_KEYS:
        _docker(errors, data, _DOCKER_KEYS[kind])
    elif kind == "basic-auth":
        if "username" not in data and "password" not in data:
            errors += [required("data[username]"), required("data[password]")]
    elif kind == "ssh-auth":
        if not data.get("ssh-privatekey"):
            errors.append(required("data[ssh-privatekey]"))
    elif kind == "tls":
        errors += [required(f"data[{key}]") for key in ("tls.crt", "tls.key") if key not in data]


def _docker(errors: Errors, data: Mapping[str, str], key: str) -> None:
    if key not in data:
        errors.append(required(f"data[{key}]"))
        return
    try:
        parsed: Any = orjson.loads(base64.b64decode(data[key]))
        why = "" if parsed is None or isinstance(parsed, dict) else _not_an_object(parsed)
    except ValueError as error:  # not base64, or not JSON
        why = f"invalid JSON: {error}"
    if why:
        errors.append(invalid(f"data[{key}]", "<secret contents redacted>", why))


def _not_an_object(value: Any) -> str:
    name = {str: "string", bool: "bool", list: "array"}.get(type(value), "number")
    return f"json: cannot unmarshal {name} into Go value of type map[string]interface {{}}"


def _decoded_size(text: str) -> int:
    """Of base64, without decoding it."""
    return len(text) * 3 // 4 - text.count("=", -2)
