"""Annotations of pods that mean something to Kubernetes."""

from collections.abc import Iterator, Mapping

import orjson

from kubeclient.objects import Obj
from localkube.apiserver.patch.go_text import quoted
from localkube.apiserver.validation.affinity import tolerations
from localkube.apiserver.validation.errors import Errors, forbidden_field, invalid
from localkube.apiserver.validation.paths import descending
from localkube.apiserver.validation.pod_spec import MIRROR
from localkube.apiserver.validation.windows import GROUPS

_TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_KNOWN = (MIRROR, _TOLERATIONS, _DELETION_COST, _SECCOMP_POD)
_PREFIXES = (_SECCOMP_CONTAINER, _APP_ARMOR)
_LOCAL = "localhost/"


def pod_annotations(errors: Errors, metadata: Obj, spec: Obj, path: str) -> None:
    annotations = metadata.get("annotations")
    if not annotations or not _concerned(annotations):
        return
    if MIRROR in annotations and "nodeName" not in spec:
        what = "must set spec.nodeName if mirror pod annotation is set"
        errors.append(invalid(f"{path}[{MIRROR}]", annotations[MIRROR], what))
    if annotations.get(_TOLERATIONS):
        _tolerations(errors, annotations[_TOLERATIONS], path)
    cost = annotations.get(_DELETION_COST)
    if cost is not None and not _is_cost(cost):
        errors.append(invalid(f"{path}[{_DELETION_COST}]", cost, "must be a 32bit integer"))
    for key, value in annotations.items():
        if key == _SECCOMP_POD or key.startswith(_SECCOMP_CONTAINER):
            _seccomp(errors, value, f"{path}.{key}")
    for key, value in annotations.items():
        if key.startswith(_APP_ARMOR):
            _app_armor(errors, key, value, spec, f"{path}[{key}]")


def pod_annotations_update(errors: Errors, new: Obj, old: Obj) -> None:
    after, before = (obj["metadata"].get("annotations", {}) for obj in (new, old))
    for key in before:
        if after.get(key) != before[key]:
            _fixed(errors, key, "remove or update")
    for key in after:
        if key not in before:
            _fixed(errors, key, "add")
    pod_annotations(errors, new["metadata"], new["spec"], "metadata.annotations")


def profiles_agree(errors: Errors, metadata: Obj, spec: Obj, path: str) -> None:
    """Where an annotation and a field say the same thing, they must say the same."""
    annotations = metadata.get("annotations")
    if not annotations or not _concerned(annotations):
        return
    whole = spec["securityContext"]
    if "seccompProfile" in whole and _SECCOMP_POD in annotations:
        at = f"{path}.securityContext.seccompProfile"
        _agrees(errors, "seccomp", annotations[_SECCOMP_POD], whole["seccompProfile"], at)
    for name, context, at in _contexts(spec, path):
        profile = context.get("seccompProfile")
        key = f"{_SECCOMP_CONTAINER}{name}"
        if profile is not None and key in annotations:
            _agrees(errors, "seccomp", annotations[key], profile, f"{at}.seccompProfile")
    if spec.get("os", {}).get("name") == "windows":
        return
    for name, context, at in _contexts(spec, path):
        profile = context.get("appArmorProfile", whole.get("appArmorProfile"))
        key = f"{_APP_ARMOR}{name}"
        if profile is not None and key in annotations:
            _agrees(errors, "apparmor", annotations[key], profile, f"{at}.appArmorProfile")


def _concerned(annotations: Mapping[str, str]) -> bool:
    return any(key in _KNOWN or key.startswith(_PREFIXES) for key in annotations)


def _contexts(spec: Obj, path: str) -> Iterator[tuple[str, Obj, str]]:
    for group in GROUPS:
        for place, container in enumerate(spec.get(group, ())):
            at = f"{path}.{group}[{place}].securityContext"
            yield container["name"], container.get("securityContext", {}), at


def _tolerations(errors: Errors, text: str, path: str) -> None:
    try:
        listed = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        errors.append(invalid(path, _TOLERATIONS, str(error)))
        return
    if isinstance(listed, list) and all(isinstance(one, dict) for one in listed):
        tolerations(errors, listed, f"{path}.{_TOLERATIONS}")


def _is_cost(text: str) -> bool:
    """As it is written back: no plus sign, no leading zeros, 32 bits."""
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 10:
        return False
    return str(int(text)) == text and -(2**31) <= int(text) < 2**31


def _seccomp(errors: Errors, profile: str, path: str) -> None:
    if profile in ("runtime/default", "docker/default", "unconfined"):
        return
    if profile.startswith(_LOCAL):
        descending(errors, profile.removeprefix(_LOCAL), path)
    else:
        errors.append(invalid(path, profile, "must be a valid seccomp profile"))


def _app_armor(errors: Errors, key: str, profile: str, spec: Obj, path: str) -> None:
    name = key.removeprefix(_APP_ARMOR)
    if not any(name == other for other, _, _ in _contexts(spec, "")):
        errors.append(invalid(path, name, "container not found"))
    if profile not in ("", "runtime/default", "unconfined") and not profile.startswith(_LOCAL):
        what = f"invalid AppArmor profile name: {quoted(profile)}"
        errors.append(invalid(path, profile, what))


def _fixed(errors: Errors, key: str, act: str) -> None:
    path = f"metadata.annotations[{key}]"
    if key.startswith(_APP_ARMOR):
        errors.append(forbidden_field(path, f"may not {act} AppArmor annotations"))
    if key == MIRROR:
        errors.append(forbidden_field(path, f"may not {act} mirror pod annotation"))


def _agrees(errors: Errors, what: str, annotation: str, profile: Obj, path: str) -> None:
    named: dict[str, tuple[str, ...]] = {
        "Unconfined": ("unconfined",),
        "RuntimeDefault": ("runtime/default",),
    }
    if what == "seccomp":
        named["RuntimeDefault"] = ("runtime/default", "docker/default")
    kind = profile["type"]
    local = kind == "Localhost" and annotation.startswith(_LOCAL)
    if kind in ("Localhost", *named) and not local and annotation not in named.get(kind, ()):
        text = f"{what} type in annotation and field must match"
        errors.append(forbidden_field(f"{path}.type", text))
    elif local and annotation.removeprefix(_LOCAL) != profile.get("localhostProfile"):
        text = f"{what} profile in annotation and field must match"
        errors.append(forbidden_field(f"{path}.localhostProfile", text))
