"""Security contexts of pods and containers."""

import re

from kubeclient.objects import Obj
from localkube.apiserver.validation.errors import (
    Errors,
    duplicate,
    invalid,
    invalid_each,
    not_supported,
    required,
    too_long,
)
from localkube.apiserver.validation.formats import size, user_id
from localkube.apiserver.validation.paths import descending

_PROFILE_TYPES = ("Localhost", "RuntimeDefault", "Unconfined")
_PROFILE_PATH_MAX = 4095
_SYSCTL_MAX = 253
_SYSCTL_PART = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = rf"({_SYSCTL_PART}[\./])*{_SYSCTL_PART}"
# The same language as the pattern that the error text shows, without its backtracking.
_is_sysctl = re.compile(r"[a-z0-9]+([-_]+[a-z0-9]+)*([./][a-z0-9]+([-_]+[a-z0-9]+)*)*").fullmatch
_IPC_SYSCTLS = ("kernel.shm", "kernel.msg", "fs.mqueue.")


def container_security(errors: Errors, context: Obj, path: str, *, host_users: bool) -> None:
    for name in ("runAsUser", "runAsGroup"):
        if name in context:
            invalid_each(errors, f"{path}.{name}", context[name], user_id(context[name]))
    mount = context.get("procMount")
    if mount is not None and mount not in ("Default", "Unmasked"):
        errors.append(not_supported(f"{path}.procMount", mount, ("Default", "Unmasked")))
    if host_users and mount == "Unmasked":
        what = "`hostUsers` must be false to use `Unmasked`"
        errors.append(invalid(f"{path}.procMount", mount, what))
    _seccomp(errors, context.get("seccompProfile"), f"{path}.seccompProfile")
    if context.get("allowPrivilegeEscalation") is False:
        _escalation(errors, context, path)
    _app_armor(errors, context.get("appArmorProfile"), f"{path}.appArmorProfile")


def pod_security(errors: Errors, spec: Obj, path: str) -> None:
    context: Obj = spec["securityContext"]
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        _ids(errors, context, path)
        what = "ShareProcessNamespace and HostPID cannot both be enabled"
        errors.append(invalid(f"{path}.shareProcessNamespace", True, what))
    elif context:
        _ids(errors, context, path)
    if not context:
        return
    _sysctls(errors, spec, context, f"{path}.sysctls")
    _choice(errors, context, "fsGroupChangePolicy", ("Always", "OnRootMismatch"), path)
    _seccomp(errors, context.get("seccompProfile"), f"{path}.seccompProfile")
    _app_armor(errors, context.get("appArmorProfile"), f"{path}.appArmorProfile")
    _choice(errors, context, "supplementalGroupsPolicy", ("Merge", "Strict"), path)
    _choice(errors, context, "seLinuxChangePolicy", ("Recursive",), path)


def _ids(errors: Errors, context: Obj, path: str) -> None:
    for name in ("fsGroup", "runAsUser", "runAsGroup"):
        if name in context:
            invalid_each(errors, f"{path}.{name}", context[name], user_id(context[name]))
    for place, group in enumerate(context.get("supplementalGroups", ())):
        invalid_each(errors, f"{path}.supplementalGroups[{place}]", group, user_id(group))


def _choice(errors: Errors, context: Obj, name: str, choices: tuple[str, ...], path: str) -> None:
    if name in context and context[name] not in choices:
        errors.append(not_supported(f"{path}.{name}", context[name], choices))


def _escalation(errors: Errors, context: Obj, path: str) -> None:
    if context.get("privileged"):
        what = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        errors.append(invalid(path, context, what))
    for capability in context.get("capabilities", {}).get("add", ()):
        if capability == "CAP_SYS_ADMIN":
            what = (
                "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add`"
                " CAP_SYS_ADMIN"
            )
            errors.append(invalid(path, context, what))


def _seccomp(errors: Errors, profile: Obj | None, path: str) -> None:
    if profile is None:
        return
    kind, local = profile["type"], profile.get("localhostProfile")
    if not kind:
        errors.append(required(f"{path}.type", "type is required when seccompProfile is set"))
    elif kind not in _PROFILE_TYPES:
        errors.append(not_supported(f"{path}.type", kind, _PROFILE_TYPES))
    at = f"{path}.localhostProfile"
    if kind == "Localhost":
        if local is None:
            errors.append(required(at, "must be set when seccomp type is Localhost"))
        else:
            descending(errors, local, at)
    elif local is not None:
        what = "can only be set when seccomp type is Localhost"
        errors.append(invalid(at, profile, what))


def _app_armor(errors: Errors, profile: Obj | None, path: str) -> None:
    if profile is None:
        return
    kind, local = profile["type"], profile.get("localhostProfile")
    at = f"{path}.localhostProfile"
    if kind == "Localhost":
        _app_armor_file(errors, local, at)
    elif kind in _PROFILE_TYPES:
        if local is not None:
            what = "can only be set when AppArmor type is Localhost"
            errors.append(invalid(at, local, what))
    elif not kind:
        errors.append(required(f"{path}.type", "type is required when appArmorProfile is set"))
    else:
        errors.append(not_supported(f"{path}.type", kind, _PROFILE_TYPES))


def _app_armor_file(errors: Errors, local: str | None, at: str) -> None:
    if not local:
        errors.append(required(at, "must be set when AppArmor type is Localhost"))
        return
    if local.strip() != local:
        errors.append(invalid(at, local, "must not be padded with whitespace"))
    if size(local) > _PROFILE_PATH_MAX:
        errors.append(too_long(at, _PROFILE_PATH_MAX))


def _sysctls(errors: Errors, spec: Obj, context: Obj, path: str) -> None:
    seen: set[str] = set()
    for place, sysctl in enumerate(context.get("sysctls", ())):
        name, at = sysctl["name"], f"{path}[{place}].name"
        if not name:
            errors.append(required(at))
        elif size(name) > _SYSCTL_MAX or not _is_sysctl(name):
            what = f"must have at most {_SYSCTL_MAX} characters and match regex ^{_SYSCTL}$"
            errors.append(invalid(at, name, what))
        elif name in seen:
            errors.append(duplicate(at, name))
        dotted = _dotted(name)
        if spec.get("hostNetwork") and dotted.startswith("net."):
            errors.append(invalid(at, name, "may not be specified when 'hostNetwork' is true"))
        elif spec.get("hostIPC") and _is_ipc(dotted):
            errors.append(invalid(at, name, "may not be specified when 'hostIPC' is true"))
        seen.add(name)


def _dotted(name: str) -> str:
    """Slashes may separate the parts, and then dots are part of a name."""
    first = next((character for character in name if character in "./"), ".")
    return name if first == "." else name.translate(str.maketrans("./", "/."))


def _is_ipc(name: str) -> bool:
    return name == "kernel.sem" or name.startswith(_IPC_SYSCTLS)
