"""What pods for Windows may and may not say."""

import re

from kubeclient.objects import Obj
from localkube.apiserver.validation.errors import (
    Errors,
    forbidden_field,
    invalid,
)
from localkube.apiserver.validation.formats import size

GROUPS = ("initContainers", "containers", "ephemeralContainers")
_NOT_IN_POD = (
    *("appArmorProfile", "seLinuxOptions", "seccompProfile", "fsGroup", "fsGroupChangePolicy"),
    *("sysctls", "runAsUser", "runAsGroup", "supplementalGroups", "supplementalGroupsPolicy"),
    "seLinuxChangePolicy",
)
_NOT_IN_SPEC = ("hostUsers", "hostPID", "hostIPC", "shareProcessNamespace")
_NOT_IN_CONTAINER = (
    *("appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities"),
    *("readOnlyRootFilesystem", "privileged", "allowPrivilegeEscalation", "procMount"),
    *("runAsUser", "runAsGroup"),
)
# In the order in which Kubernetes looks.
_ORDER = (
    *("appArmorProfile", "seLinuxOptions", "hostUsers", "hostPID", "hostIPC", "seccompProfile"),
    *("fsGroup", "fsGroupChangePolicy", "sysctls", "shareProcessNamespace", "runAsUser"),
    *("runAsGroup", "supplementalGroups", "supplementalGroupsPolicy", "seLinuxChangePolicy"),
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NETBIOS = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}')
_DNS_PART = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_DNS = re.compile(rf"{_DNS_PART}(?:\.{_DNS_PART})*")
_BAD_IN_USER = re.compile(r'["/\\:;|=,+*?<>@\[\]]')
_DOTS_AND_SPACES = re.compile(r"[. ]+")
_DOMAIN_MAX = 256
_USER_MAX = 104


def windows_only(errors: Errors, spec: Obj, path: str) -> None:
    what = "cannot be set for a windows pod"
    for name in _ORDER:
        if name in _NOT_IN_SPEC:
            if name in spec:
                errors.append(forbidden_field(f"{path}.{name}", what))
        elif name in spec["securityContext"]:
            errors.append(forbidden_field(f"{path}.securityContext.{name}", what))
    for group in GROUPS:
        for place, container in enumerate(spec.get(group, ())):
            for name in _NOT_IN_CONTAINER:
                if name in container.get("securityContext", {}):
                    at = f"{path}.{group}[{place}].securityContext.{name}"
                    errors.append(forbidden_field(at, what))


def host_process(errors: Errors, spec: Obj, path: str) -> None:
    """Containers that are processes of the node: all or none of a pod."""
    whole = spec["securityContext"].get("windowsOptions", {}).get("hostProcess")
    count = hosted = 0
    for group in GROUPS:
        for place, container in enumerate(spec.get(group, ())):
            count += 1
            options = container.get("securityContext", {}).get("windowsOptions", {})
            own = options.get("hostProcess")
            if whole is not None and own is not None and own != whole:
                what = (
                    "pod hostProcess value must be identical if both are specified, was"
                    f" {str(whole).lower()}"
                )
                at = f"{path}.{group}[{place}].securityContext.windowsOptions.hostProcess"
                errors.append(invalid(at, own, what))
            hosted += bool(own if own is not None else whole)
    if not hosted:
        return
    if hosted != count:
        what = (
            "If pod contains any hostProcess containers then all containers must be HostProcess"
            " containers"
        )
        errors.append(invalid(path, "", what))
    if not spec.get("hostNetwork"):
        what = "hostNetwork must be true if pod contains any hostProcess containers"
        errors.append(invalid(f"{path}.hostNetwork", False, what))


def run_as_user_name(errors: Errors, name: str, path: str) -> None:
    for complaint in _user_name_complaints(name):
        errors.append(invalid(path, name, f"runAsUserName{complaint}"))


def _user_name_complaints(name: str) -> list[str]:
    if not name:
        return [" cannot be an empty string"]
    if _CONTROL.search(name):
        return [" cannot contain control characters"]
    if name.count("\\") > 1:
        return [" cannot contain more than one backslash"]
    domain, slash, user = name.rpartition("\\")
    complaints = []
    if size(domain) >= _DOMAIN_MAX:
        complaints.append(f"'s Domain length must be under {_DOMAIN_MAX} characters")
    if slash and not _NETBIOS.fullmatch(domain) and not _DNS.fullmatch(domain):
        complaints.append("'s Domain doesn't match the NetBios nor the DNS format")
    if not user:
        complaints.append("'s User cannot be empty")
    elif size(user) > _USER_MAX:
        complaints.append(f"'s User length must not be longer than {_USER_MAX} characters")
    if _DOTS_AND_SPACES.fullmatch(user):
        complaints.append("'s User cannot contain only periods or spaces")
    if _BAD_IN_USER.search(user):
        complaints.append("'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]")
    return complaints
