"""A pod's spec, in a pod or in a template."""

from collections.abc import Collection

from kubeclient import quantity
from kubeclient.objects import Obj
from localkube.apiserver.defaults.pod_resources import aggregate
from localkube.apiserver.validation.addresses import valid_ip
from localkube.apiserver.validation.affinity import (
    affinity,
    spread_constraints,
    tolerations,
)
from localkube.apiserver.validation.containers import (
    Around,
    containers,
    ephemeral_containers,
    init_containers,
)
from localkube.apiserver.validation.errors import (
    Errors,
    duplicate,
    forbidden_field,
    in_range,
    invalid,
    invalid_each,
    not_found,
    not_supported,
    required,
    too_long,
)
from localkube.apiserver.validation.formats import (
    dns_label,
    dns_subdomain,
    dns_subdomain_with_underscore,
    label_key,
    size,
)
from localkube.apiserver.validation.metadata import labels
from localkube.apiserver.validation.resources import (
    container_resources,
    is_huge,
    pod_resource_name,
    requirements,
)
from localkube.apiserver.validation.security import pod_security
from localkube.apiserver.validation.volumes import volumes

GROUPS = ("initContainers", "containers", "ephemeralContainers")
MIRROR = "kubernetes.io/config.mirror"
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_NAMESERVERS_MAX = 3
_SEARCHES_MAX = 32
_SEARCH_LIST_MAX = 2048
_HOSTNAME_MAX = 64
_DEADLINE_MAX = 2**31 - 1


def pod_spec(errors: Errors, spec: Obj, pod: Obj | None, path: str) -> None:
    """`pod` is the pod's metadata; None in templates."""
    claims = {claim["name"] for claim in spec.get("resourceClaims", ()) if claim["name"]}
    around = Around(
        volumes=volumes(errors, spec, pod, f"{path}.volumes"),
        claims=claims,
        grace=spec["terminationGracePeriodSeconds"],
        restart_policy=spec["restartPolicy"],
        host_users=spec.get("hostUsers", True),
    )
    if claims or "resourceClaims" in spec:
        _resource_claims(errors, spec["resourceClaims"], pod, f"{path}.resourceClaims")
    containers(errors, spec.get("containers", []), around, f"{path}.containers")
    if "initContainers" in spec:
        init_containers(errors, spec, around, f"{path}.initContainers")
    if "ephemeralContainers" in spec:
        ephemeral_containers(errors, spec, around, f"{path}.ephemeralContainers")
    if "resources" in spec:
        _pod_resources(errors, spec, claims, path)
    if spec.get("hostNetwork"):
        _host_network(errors, spec, path, is_pod=pod is not None)
    _policies(errors, spec, path)
    _placement(errors, spec, path)
    _names(errors, spec, path)
    if "os" in spec:
        _operating_system(errors, spec, path)
    _file_key_volumes(errors, spec, path)


def _policies(errors: Errors, spec: Obj, path: str) -> None:
    if spec["restartPolicy"] not in _RESTART_POLICIES:
        at = f"{path}.restartPolicy"
        errors.append(not_supported(at, spec["restartPolicy"], _RESTART_POLICIES))
    if spec["dnsPolicy"] not in _DNS_POLICIES:
        errors.append(not_supported(f"{path}.dnsPolicy", spec["dnsPolicy"], _DNS_POLICIES))
    if "nodeSelector" in spec:
        labels(errors, spec["nodeSelector"], f"{path}.nodeSelector")
    pod_security(errors, spec, f"{path}.securityContext")
    if "affinity" in spec:
        affinity(errors, spec["affinity"], f"{path}.affinity")
    if "dnsConfig" in spec or spec["dnsPolicy"] == "None":
        _dns_config(errors, spec, f"{path}.dnsConfig")
    for place, gate in enumerate(spec.get("readinessGates", ())):
        at, name = f"{path}.readinessGates[{place}].conditionType", gate["conditionType"]
        invalid_each(errors, at, name, label_key(name))
    if "schedulingGates" in spec:
        _scheduling_gates(errors, spec["schedulingGates"], f"{path}.schedulingGates")


def _placement(errors: Errors, spec: Obj, path: str) -> None:
    if "topologySpreadConstraints" in spec:
        at = f"{path}.topologySpreadConstraints"
        spread_constraints(errors, spec["topologySpreadConstraints"], at)
    if spec.get("hostUsers") is False:
        _host_users(errors, spec, path)
    if "hostnameOverride" in spec:
        _hostname_override(errors, spec, f"{path}.hostnameOverride")


def _names(errors: Errors, spec: Obj, path: str) -> None:
    for name in ("serviceAccountName", "nodeName"):
        if name in spec and dns_subdomain(spec[name]):
            invalid_each(errors, f"{path}.{name}", spec[name], dns_subdomain(spec[name]))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _DEADLINE_MAX:
        at = f"{path}.activeDeadlineSeconds"
        errors.append(invalid(at, deadline, in_range(1, _DEADLINE_MAX)))
    for name in ("hostname", "subdomain"):
        if name in spec:
            invalid_each(errors, f"{path}.{name}", spec[name], dns_label(spec[name]))
    if "tolerations" in spec:
        tolerations(errors, spec["tolerations"], f"{path}.tolerations")
    if "hostAliases" in spec:
        _host_aliases(errors, spec["hostAliases"], f"{path}.hostAliases")
    _classes(errors, spec, path)


def _classes(errors: Errors, spec: Obj, path: str) -> None:
    for name in ("priorityClassName", "runtimeClassName"):
        if name in spec:
            invalid_each(errors, f"{path}.{name}", spec[name], dns_subdomain(spec[name]))
    policy = spec.get("preemptionPolicy")
    if policy is not None and policy not in _PREEMPTION_POLICIES:
        preemption_policy(errors, policy, f"{path}.preemptionPolicy")
    if "overhead" in spec:
        container_resources(errors, {"limits": spec["overhead"]}, (), f"{path}.overhead")


def preemption_policy(errors: Errors, policy: str, path: str) -> None:
    if not policy:
        errors.append(required(path))
    elif policy not in _PREEMPTION_POLICIES:
        errors.append(not_supported(path, policy, _PREEMPTION_POLICIES))


def _resource_claims(errors: Errors, claims: list[Obj], pod: Obj | None, path: str) -> None:
    seen: set[str] = set()
    for place, claim in enumerate(claims):
        if pod is not None and MIRROR in pod.get("annotations", {}):
            errors.append(forbidden_field("", "static pods do not support resource claims"))
            continue
        _resource_claim(errors, claim, seen, f"{path}[{place}]")


def _resource_claim(errors: Errors, claim: Obj, seen: set[str], path: str) -> None:
    name = claim["name"]
    if not name:
        errors.append(required(f"{path}.name"))
    elif name in seen:
        errors.append(duplicate(f"{path}.name", name))
    else:
        invalid_each(errors, f"{path}.name", name, dns_label(name))
        seen.add(name)
    sources = [one for one in ("resourceClaimName", "resourceClaimTemplateName") if one in claim]
    if len(sources) != 1:
        some = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        none = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        what = some if sources else none
        errors.append(invalid(path, claim, what))
    for source in sources:
        complaints = dns_subdomain(claim[source])
        invalid_each(errors, f"{path}.{source}", claim[source], complaints)


def _pod_resources(errors: Errors, spec: Obj, claims: Collection[str], path: str) -> None:
    resources, at = spec["resources"], f"{path}.resources"
    if "claims" in resources:
        what = "claims may not be set for Resources at pod-level"
        errors.append(forbidden_field(f"{at}.claims", what))
    requirements(errors, resources, pod_resource_name, claims, at)
    requests, limits = resources.get("requests", {}), resources.get("limits", {})
    for name, total in aggregate(spec, "requests").items():
        if name in requests and total > quantity.parse(requests[name]):
            what = f"must be greater than or equal to aggregate container requests of {total}"
            errors.append(invalid(f"{at}.requests[{name}]", requests[name], what))
    for name, total in aggregate(spec, "limits").items():
        if is_huge(name) and name in limits and total > quantity.parse(limits[name]):
            what = f"must be greater than or equal to aggregate container limits of {total}"
            errors.append(invalid(f"{at}.limits[{name}]", limits[name], what))
    for place, container in enumerate(spec.get("containers", ())):
        for name, text in container["resources"].get("limits", {}).items():
            if name in limits and quantity.parse(text) > quantity.parse(limits[name]):
                what = f"must be less than or equal to pod limits of {limits[name]}"
                where = f"{at}.containers[{place}][{name}].limits"
                errors.append(invalid(where, text, what))


def _host_network(errors: Errors, spec: Obj, path: str, *, is_pod: bool) -> None:
    for place, container in enumerate(spec.get("containers", ())):
        for number, port in enumerate(container.get("ports", ())):
            on_host = port.get("hostPort", 0)
            if (is_pod or on_host != 0) and on_host != port["containerPort"]:
                at = f"{path}.containers[{place}].ports[{number}].hostPort"
                what = "must match `containerPort` when `hostNetwork` is true"
                errors.append(invalid(at, on_host, what))


def _scheduling_gates(errors: Errors, gates: list[Obj], path: str) -> None:
    seen: set[str] = set()
    for place, gate in enumerate(gates):
        invalid_each(errors, f"{path}[{place}]", gate["name"], label_key(gate["name"]))
        if gate["name"] in seen:
            errors.append(duplicate(f"{path}[{place}]", gate["name"]))
        seen.add(gate["name"])


def _dns_config(errors: Errors, spec: Obj, path: str) -> None:
    config = spec.get("dnsConfig")
    if spec["dnsPolicy"] == "None" and config is None:
        errors.append(required(path, "must provide `dnsConfig` when `dnsPolicy` is None"))
        return
    config = config or {}
    servers, searches = config.get("nameservers", []), config.get("searches", [])
    if spec["dnsPolicy"] == "None" and not servers:
        what = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        errors.append(required(f"{path}.nameservers", what))
        return
    if len(servers) > _NAMESERVERS_MAX:
        what = f"must not have more than {_NAMESERVERS_MAX} nameservers"
        errors.append(invalid(f"{path}.nameservers", servers, what))
    for place, server in enumerate(servers):
        valid_ip(errors, f"{path}.nameservers[{place}]", server)
    _searches(errors, searches, f"{path}.searches")
    for place, option in enumerate(config.get("options", ())):
        if not option.get("name"):
            errors.append(required(f"{path}.options[{place}]", "must not be empty"))


def _searches(errors: Errors, searches: list[str], path: str) -> None:
    if len(searches) > _SEARCHES_MAX:
        what = f"must not have more than {_SEARCHES_MAX} search paths"
        errors.append(invalid(path, searches, what))
    if size(" ".join(searches)) > _SEARCH_LIST_MAX:
        what = (
            f"must not have more than {_SEARCH_LIST_MAX} characters (including spaces) in the"
            " search list"
        )
        errors.append(invalid(path, searches, what))
    for place, search in enumerate(searches):
        if search != ".":
            name = search.removesuffix(".")
            complaints = dns_subdomain_with_underscore(name)
            invalid_each(errors, f"{path}[{place}]", name, complaints)


def _host_users(errors: Errors, spec: Obj, path: str) -> None:
    what = "when `hostUsers` is false"
    for name, shown in (
        ("hostNetwork", "hostNetwork"),
        ("hostPID", "HostPID"),
        ("hostIPC", "HostIPC"),
    ):
        if spec.get(name):
            errors.append(forbidden_field(f"{path}.{shown}", what))
    for group in GROUPS:
        for place, container in enumerate(spec.get(group, ())):
            if container.get("volumeDevices"):
                errors.append(forbidden_field(f"{path}.{group}[{place}].volumeDevices", what))


def _hostname_override(errors: Errors, spec: Obj, path: str) -> None:
    if spec.get("setHostnameAsFQDN"):
        what = "may not be specified when setHostnameAsFQDN is true"
        errors.append(forbidden_field(path, what))
    if spec.get("hostNetwork"):
        errors.append(forbidden_field(path, "may not be specified when hostNetwork is true"))
    if size(spec["hostnameOverride"]) > _HOSTNAME_MAX:
        errors.append(too_long(path, _HOSTNAME_MAX))
    complaints = dns_subdomain(spec["hostnameOverride"])
    invalid_each(errors, path, spec["hostnameOverride"], complaints)


def _host_aliases(errors: Errors, aliases: list[Obj], path: str) -> None:
    for place, alias in enumerate(aliases):
        valid_ip(errors, f"{path}[{place}].ip", alias["ip"])
        for number, name in enumerate(alias.get("hostnames", ())):
            at = f"{path}[{place}].hostnames[{number}]"
            invalid_each(errors, at, name, dns_subdomain(name))


def _operating_system(errors: Errors, spec: Obj, path: str) -> None:
    name = spec["os"]["name"]
    if not name:
        errors.append(required(f"{path}.os.name"))
    elif name not in ("linux", "windows"):
        errors.append(not_supported(f"{path}.os", name, ("linux", "windows")))


def _file_key_volumes(errors: Errors, spec: Obj, path: str) -> None:
    for group in GROUPS:
        for place, container in enumerate(spec.get(group, ())):
            for number, variable in enumerate(container.get("env", ())):
                reference = variable.get("valueFrom", {}).get("fileKeyRef")
                if reference is not None:
                    at = f"{path}.{group}[{place}].env[{number}].valueFrom.fileKeyRef.volumeName"
                    _file_key_volume(errors, spec, reference["volumeName"], at)


def _file_key_volume(errors: Errors, spec: Obj, name: str, path: str) -> None:
    found = [volume for volume in spec.get("volumes", ()) if volume["name"] == name]
    if not found:
        errors.append(not_found(path, name))
    elif "emptyDir" not in found[-1]:
        errors.append(invalid(path, name, "referenced volume must be of type emptyDir"))
