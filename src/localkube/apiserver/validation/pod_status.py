"""Pod status, as kubelets and schedulers report it."""

from collections.abc import Sequence

from kubeclient.objects import Obj
from localkube.apiserver.validation.addresses import is_ipv6, valid_ip
from localkube.apiserver.validation.errors import (
    Errors,
    duplicate,
    forbidden_field,
    invalid,
    invalid_each,
    not_supported,
    unchanged,
)
from localkube.apiserver.validation.formats import dns_subdomain, label_key, user_id
from localkube.apiserver.validation.metadata import own_meta_update
from localkube.apiserver.validation.pod_annotations import pod_annotations_update

_SYSTEM_CONDITIONS = ("PodScheduled", "Ready", "Initialized")
_HEALTH = ("Healthy", "Unhealthy", "Unknown")
_NOT_NEGATIVE = "must be a non-negative integer"


def status_update(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    own_meta_update(errors, new["metadata"], old["metadata"])
    pod_annotations_update(errors, new, old)
    status, before = new.get("status", {}), old.get("status", {})
    _conditions(errors, status.get("conditions", ()))
    _nominated(errors, status, before, old["spec"])
    if status.get("observedGeneration", 0) < 0:
        at = "status.observedGeneration"
        errors.append(invalid(at, status["observedGeneration"], _NOT_NEGATIVE))
    if "qosClass" in before or "qosClass" in status:
        unchanged(errors, status.get("qosClass", ""), before.get("qosClass", ""), "status.qosClass")
    _transitions(errors, status, before, old["spec"])
    _claim_statuses(errors, status, new["spec"])
    _addresses(errors, status, before)
    _users(errors, status, new["spec"])
    return errors


def _conditions(errors: Errors, conditions: Sequence[Obj]) -> None:
    for place, condition in enumerate(conditions):
        at, name = f"status.conditions[{place}]", condition["type"]
        if condition.get("observedGeneration", 0) < 0:
            value = condition["observedGeneration"]
            errors.append(invalid(f"{at}.observedGeneration", value, _NOT_NEGATIVE))
        if name not in _SYSTEM_CONDITIONS:
            invalid_each(errors, f"{at}.Type", name, label_key(name))


def _nominated(errors: Errors, status: Obj, before: Obj, spec: Obj) -> None:
    name = status.get("nominatedNodeName", "")
    if not name or name == before.get("nominatedNodeName", ""):
        return
    invalid_each(errors, "status.nominatedNodeName", name, dns_subdomain(name))
    if spec.get("nodeName"):
        what = "may not be set on pods that are already bound to a node"
        errors.append(forbidden_field("status.nominatedNodeName", what))


def _transitions(errors: Errors, status: Obj, before: Obj, spec: Obj) -> None:
    """A container that has ended stays so, unless its restart policy starts it again."""
    for name, group in (
        ("containerStatuses", "containers"),
        ("initContainerStatuses", "initContainers"),
        ("ephemeralContainerStatuses", ""),
    ):
        if name not in before:
            continue
        now = {one["name"]: one for one in status.get(name, ())}
        containers = {one["name"]: one for one in spec.get(group, ())}
        for place, was in enumerate(before[name]):
            ended = was.get("state", {}).get("terminated")
            current = now.get(was["name"])
            if ended is None or current is None or "terminated" in current.get("state", {}):
                continue
            if not _restarts(containers.get(was["name"]), spec, ended["exitCode"]):
                what = "may not be transitioned to non-terminated state"
                errors.append(forbidden_field(f"status.{name}[{place}].state", what))


def _restarts(container: Obj | None, spec: Obj, code: int) -> bool:
    if container is None:
        return False
    for rule in container.get("restartPolicyRules", ()):
        codes = rule.get("exitCodes", {})
        named = code in codes.get("values", ())
        if named == (codes.get("operator") == "In"):
            return True
    policy = container.get("restartPolicy", spec["restartPolicy"])
    return policy == "Always" or (policy == "OnFailure" and code != 0)


def _claim_statuses(errors: Errors, status: Obj, spec: Obj) -> None:
    known = {claim["name"] for claim in spec.get("resourceClaims", ())}
    seen: set[str] = set()
    for place, one in enumerate(status.get("resourceClaimStatuses", ())):
        at, name = f"status.resourceClaimStatuses[{place}].name", one["name"]
        if name not in known:
            what = "must match the name of an entry in `spec.resourceClaims`"
            errors.append(invalid(at, name, what))
        if name in seen:
            errors.append(duplicate(at, name))
        seen.add(name)
        claim = one.get("resourceClaimName")
        if claim is not None:
            invalid_each(errors, at, claim, dns_subdomain(claim))


def _addresses(errors: Errors, status: Obj, before: Obj) -> None:
    hosts = status.get("hostIPs", ())
    _family(errors, status.get("podIPs", ()), before.get("podIPs", ()), "podIPs", "PodIP")
    if hosts and status.get("hostIP", "") != hosts[0]["ip"]:
        what = "must be equal to `hostIP`"
        errors.append(invalid("status.hostIPs[0].ip", hosts[0]["ip"], what))
    _family(errors, hosts, before.get("hostIPs", ()), "hostIPs", "HostIP")


def _family(
    errors: Errors, listed: Sequence[Obj], before: Sequence[Obj], name: str, kind: str
) -> None:
    path, known = f"status.{name}", [one.get("ip", "") for one in before]
    texts = [one.get("ip", "") for one in listed]
    for place, text in enumerate(texts):
        valid_ip(errors, f"{path}[{place}]", text, known)
    if len(texts) > 1 and (len(texts) > 2 or is_ipv6(texts[0]) == is_ipv6(texts[1])):
        what = "may specify no more than one IP for each IP family"
        errors.append(invalid(path, list(listed), what))


def _users(errors: Errors, status: Obj, spec: Obj) -> None:
    for name in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for place, one in enumerate(status.get(name, ())):
            user = one.get("user", {}).get("linux")
            path = f"status.{name}[{place}]"
            if user is not None:
                _linux_user(errors, user, f"{path}.user.linux")
            if "allocatedResourcesStatus" in one:
                _health(errors, one, spec, name, f"{path}.allocatedResourcesStatus")


def _linux_user(errors: Errors, user: Obj, path: str) -> None:
    for name in ("uid", "gid"):
        invalid_each(errors, f"{path}.{name}", user[name], user_id(user[name]))
    for place, group in enumerate(user.get("supplementalGroups", ())):
        invalid_each(errors, f"{path}.supplementalGroups[{place}]", group, user_id(group))


def _health(errors: Errors, one: Obj, spec: Obj, name: str, path: str) -> None:
    if name == "ephemeralContainerStatuses":
        errors.append(forbidden_field(path, "must not be specified in container status"))
        return
    group = "containers" if name == "containerStatuses" else "initContainers"
    container = next((c for c in spec.get(group, ()) if c["name"] == one["name"]), None)
    for place, resource in enumerate(one["allocatedResourcesStatus"]):
        if container is not None:
            _allocated_name(errors, resource["name"], container, f"{path}[{place}].name")
        seen: set[str] = set()
        for number, unit in enumerate(resource.get("resources", ())):
            at, health = f"{path}[{place}].resources[{number}]", unit.get("health", "")
            if health not in _HEALTH:
                errors.append(not_supported(f"{at}.health", health, _HEALTH))
            if unit["resourceID"] in seen:
                errors.append(duplicate(f"{at}.resourceID", unit["resourceID"]))
            seen.add(unit["resourceID"])


def _allocated_name(errors: Errors, name: str, container: Obj, path: str) -> None:
    resources = container["resources"]
    if name.startswith("claim:"):
        pairs = ((claim["name"], claim.get("request")) for claim in resources.get("claims", ()))
        known = {f"claim:{claim}/{part}" if part else f"claim:{claim}" for claim, part in pairs}
        what = (
            "must match one of the container's resource claims in a format"
            " 'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty"
        )
    else:
        known = set(resources.get("requests", ()))
        what = "must match one of the container's resource requests"
    if name not in known:
        errors.append(invalid(path, name, what))
