"""Services."""

from collections.abc import Sequence
from typing import Any

from kubeclient.objects import Obj
from localkube.apiserver.defaults.core_service import is_external
from localkube.apiserver.defaults.service_fields import needs_health_check_port
from localkube.apiserver.validation.addresses import (
    endpoint_ip,
    is_ipv6,
    parsed_ip,
    valid_cidr,
    valid_ip,
)
from localkube.apiserver.validation.containers import PROTOCOLS
from localkube.apiserver.validation.errors import (
    IMMUTABLE,
    Errors,
    duplicate,
    forbidden_field,
    invalid,
    invalid_each,
    not_supported,
    required,
)
from localkube.apiserver.validation.formats import (
    dns_1035_label,
    dns_label,
    dns_subdomain,
    label_key,
    port_number,
)
from localkube.apiserver.validation.metadata import labels, own_meta, own_meta_update
from localkube.apiserver.validation.probes import port_number_or_name

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_ONLY_BALANCER = "may only be used when `type` is 'LoadBalancer'"
_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
_HINTS = "service.kubernetes.io/topology-aware-hints"
_MODE = "service.kubernetes.io/topology-mode"
_AFFINITY_MAX = 86400
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_FAMILIES = ("IPv4", "IPv6")
_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")


def create(obj: Obj) -> Errors:
    errors = _allocatable(obj["spec"], ())
    if errors:
        return errors
    own_meta(errors, obj["metadata"], dns_1035_label)
    _service(errors, obj, None)
    return errors


def update(new: Obj, old: Obj) -> Errors:
    after, before = new["spec"], old["spec"]
    errors = _allocatable(after, before.get("clusterIPs", ()))
    if errors:
        return errors
    own_meta_update(errors, new["metadata"], old["metadata"])
    if "ExternalName" not in (after["type"], before["type"]):
        _same_ips(errors, after, before)
        _same_families(errors, after, before)
    _balancer_class(errors, after, before)
    checked = needs_health_check_port(after) and needs_health_check_port(before)
    if checked and after.get("healthCheckNodePort") != before.get("healthCheckNodePort"):
        errors.append(forbidden_field("spec.healthCheckNodePort", IMMUTABLE))
    _service(errors, new, old)
    return errors


def status_update(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    own_meta_update(errors, new["metadata"], old["metadata"])
    ingress = new.get("status", {}).get("loadBalancer", {}).get("ingress", ())
    path = "status.loadBalancer.ingress"
    if new["spec"]["type"] != "LoadBalancer" and ingress:
        what = "may only be used when `spec.type` is 'LoadBalancer'"
        errors.append(forbidden_field(path, what))
        return errors
    before = old.get("status", {}).get("loadBalancer", {}).get("ingress", ())
    known = [one["ip"] for one in before if one.get("ip")]
    for place, one in enumerate(ingress):
        _ingress(errors, one, known, f"{path}[{place}]")
    return errors


def _allocatable(spec: Obj, known: Sequence[str]) -> Errors:
    """Addresses are allocated before the other checks, in a cluster that has only IPv4."""
    errors: Errors = []
    if spec["type"] == "ExternalName":
        return errors
    _cluster_ips(errors, spec, known)
    if errors:
        return errors
    policy, families = spec.get("ipFamilyPolicy"), spec.get("ipFamilies", [])
    path = "spec.ipFamilyPolicy"
    for listed, called in ((spec.get("clusterIPs", []), "cluster IPs"), (families, "IP families")):
        if policy == "SingleStack" and len(listed) == 2:
            what = (
                f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {called} are"
                " specified"
            )
            errors.append(invalid(path, policy, what))
    if errors or (_is_headless(spec) and "selector" not in spec):
        return errors
    if policy == "RequireDualStack":
        what = "this cluster is not configured for dual-stack services"
        errors.append(invalid(path, policy, what))
    for place, family in enumerate(families):
        if family != "IPv4":
            what = "not configured on this cluster"
            errors.append(invalid(f"spec.ipFamilies[{place}]", family, what))
    return errors


def _is_headless(spec: Obj) -> bool:
    return bool(spec.get("clusterIPs") == ["None"])


def _service(errors: Errors, obj: Obj, old: Obj | None) -> None:
    spec: Obj = obj["spec"]
    annotations = obj["metadata"].get("annotations", {})
    if _MODE in annotations and annotations.get(_HINTS, annotations[_MODE]) != annotations[_MODE]:
        what = f"must match annotations[{_HINTS}] when both are specified"
        errors.append(invalid(f"metadata.annotations[{_MODE}]", annotations[_MODE], what))
    ports = spec.get("ports", [])
    if not ports and not _is_headless(spec) and spec["type"] != "ExternalName":
        errors.append(required("spec.ports"))
    _of_type(errors, spec)
    names: set[str] = set()
    for place, port in enumerate(ports):
        _port(errors, port, names, f"spec.ports[{place}]", named=len(ports) > 1)
    labels(errors, spec.get("selector", {}), "spec.selector")
    _affinity(errors, spec)
    _cluster_ips(errors, spec, (old or {}).get("spec", {}).get("clusterIPs", ()))
    known = (old or {}).get("spec", {}).get("externalIPs", ())
    for place, address in enumerate(spec.get("externalIPs", ())):
        if valid_ip(errors, f"spec.externalIPs[{place}]", address, known):
            endpoint_ip(errors, f"spec.externalIPs[{place}]", address)
    if spec["type"] not in _TYPES:
        errors.append(not_supported("spec.type", spec["type"], _TYPES))
    _port_numbers(errors, spec)
    _source_ranges(errors, spec, annotations, old)
    if "allocateLoadBalancerNodePorts" in spec and spec["type"] != "LoadBalancer":
        errors.append(forbidden_field("spec.allocateLoadBalancerNodePorts", _ONLY_BALANCER))
    _balancer_class(errors, spec, None)
    _traffic(errors, spec)


def _of_type(errors: Errors, spec: Obj) -> None:
    kind = spec["type"]
    if kind in ("LoadBalancer", "NodePort") and _is_headless(spec):
        what = f"may not be set to 'None' for {kind} services"
        errors.append(invalid("spec.clusterIPs[0]", "None", what))
    if kind != "ExternalName":
        return
    for name in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(name):
            what = "may not be set for ExternalName services"
            errors.append(forbidden_field(f"spec.{name}", what))
    target = spec.get("externalName", "").removesuffix(".")
    if target:
        invalid_each(errors, "spec.externalName", target, dns_subdomain(target))
    else:
        errors.append(required("spec.externalName"))


def _port(errors: Errors, port: Obj, names: set[str], path: str, *, named: bool) -> None:
    name = port.get("name", "")
    if named and not name:
        errors.append(required(f"{path}.name"))
    elif name:
        invalid_each(errors, f"{path}.name", name, dns_label(name))
        if name in names:
            errors.append(duplicate(f"{path}.name", name))
        names.add(name)
    invalid_each(errors, f"{path}.port", port["port"], port_number(port["port"]))
    if port["protocol"] not in PROTOCOLS:
        errors.append(not_supported(f"{path}.protocol", port["protocol"], PROTOCOLS))
    port_number_or_name(errors, port["targetPort"], f"{path}.targetPort")
    if "appProtocol" in port:
        protocol = port["appProtocol"]
        invalid_each(errors, f"{path}.appProtocol", protocol, label_key(protocol))


def _port_numbers(errors: Errors, spec: Obj) -> None:
    ports = spec.get("ports", ())
    on_nodes = [(place, port) for place, port in enumerate(ports) if port.get("nodePort")]
    if spec["type"] == "ClusterIP":
        for place, _ in on_nodes:
            what = "may not be used when `type` is 'ClusterIP'"
            errors.append(forbidden_field(f"spec.ports[{place}].nodePort", what))
    seen: set[tuple[str, int]] = set()
    for place, port in on_nodes:
        if (port["protocol"], port["nodePort"]) in seen:
            errors.append(duplicate(f"spec.ports[{place}].nodePort", port["nodePort"]))
        seen.add((port["protocol"], port["nodePort"]))
    seen.clear()
    for place, port in enumerate(ports):
        key = (port["protocol"], port["port"])
        if key in seen:
            errors.append(duplicate(f"spec.ports[{place}]", {"protocol": key[0], "port": key[1]}))
        seen.add(key)


def _affinity(errors: Errors, spec: Obj) -> None:
    affinity, path = spec["sessionAffinity"], "spec.sessionAffinityConfig"
    if affinity not in ("ClientIP", "None"):
        errors.append(not_supported("spec.sessionAffinity", affinity, ("ClientIP", "None")))
    elif affinity == "ClientIP":
        seconds = spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"]
        if not 0 < seconds <= _AFFINITY_MAX:
            what = f"must be greater than 0 and less than {_AFFINITY_MAX}"
            errors.append(invalid(f"{path}.clientIP.timeoutSeconds", seconds, what))


def _cluster_ips(errors: Errors, spec: Obj, known: Sequence[str]) -> None:
    if spec["type"] == "ExternalName":
        return
    address, addresses = spec.get("clusterIP", ""), spec.get("clusterIPs", [])
    path = "spec.clusterIPs"
    if address and not addresses:
        errors.append(required(path))
    elif address and addresses[0] != address:
        errors.append(invalid(path, addresses, "first value must match `clusterIP`"))
    elif not address and addresses:
        what = "must be empty when `clusterIP` is not specified"
        errors.append(invalid(path, addresses, what))
    _families(errors, spec)
    before = len(errors)
    if addresses[:1] == ["None"] and len(addresses) > 1:
        what = "'None' must be the first and only value"
        errors.append(invalid(path, addresses, what))
    for place, one in enumerate(addresses):
        if place > 0 or one != "None":
            valid_ip(errors, f"{path}[{place}]", one, known)
    usable = len(errors) == before
    if len(addresses) > 2:
        errors.append(invalid(path, addresses, "may only hold up to 2 values"))
    if usable:
        _stacks(errors, spec, addresses)


def _families(errors: Errors, spec: Obj) -> None:
    seen: set[str] = set()
    for place, family in enumerate(spec.get("ipFamilies", ())):
        if family not in _FAMILIES:
            errors.append(not_supported(f"spec.ipFamilies[{place}]", family, _FAMILIES))
        if family in seen:
            errors.append(duplicate(f"spec.ipFamilies[{place}]", family))
        seen.add(family)
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in _POLICIES:
        errors.append(not_supported("spec.ipFamilyPolicy", policy, _POLICIES))


def _stacks(errors: Errors, spec: Obj, addresses: list[str]) -> None:
    if len(addresses) > 1 and len({is_ipv6(one) for one in addresses}) == 1:
        what = "may specify no more than one IP for each IP family"
        errors.append(invalid("spec.clusterIPs", addresses, what))
    if _is_headless(spec):
        return
    for place, (one, family) in enumerate(zip(addresses, spec.get("ipFamilies", ()), strict=False)):
        if family in _FAMILIES and is_ipv6(one) != (family == "IPv6"):
            what = f"expected an {family} value as indicated by `ipFamilies[{place}]`"
            errors.append(invalid(f"spec.clusterIPs[{place}]", one, what))


def _source_ranges(errors: Errors, spec: Obj, annotations: Obj, old: Obj | None) -> None:
    ranges = spec.get("loadBalancerSourceRanges")
    if ranges:
        path = "spec.LoadBalancerSourceRanges"
        if spec["type"] != "LoadBalancer":
            errors.append(forbidden_field(path, _ONLY_BALANCER))
        before = (old or {}).get("spec", {}).get("loadBalancerSourceRanges", ())
        known = [one.strip() for one in before]
        for place, one in enumerate(ranges):
            valid_cidr(errors, f"{path}[{place}]", one.strip(), known)
    elif _RANGES in annotations:
        path, text = f"metadata.annotations[{_RANGES}]", annotations[_RANGES]
        if spec["type"] != "LoadBalancer":
            errors.append(forbidden_field(path, _ONLY_BALANCER))
        before = (old or {}).get("metadata", {}).get("annotations", {}).get(_RANGES)
        if text != before and text.strip():
            for one in text.split(","):
                valid_cidr(errors, path, one.strip())


def _balancer_class(errors: Errors, spec: Obj, old: Obj | None) -> None:
    path, name = "spec.loadBalancerClass", spec.get("loadBalancerClass")
    balances = spec["type"] == "LoadBalancer"
    stays = old is not None and balances and old["type"] == "LoadBalancer"
    if stays and name != (old or {}).get("loadBalancerClass"):
        errors.append(invalid(path, name, "may not change once set"))
    if name is not None and balances:
        invalid_each(errors, path, name, label_key(name))
    elif name is not None:
        errors.append(forbidden_field(path, _ONLY_BALANCER))


def _traffic(errors: Errors, spec: Obj) -> None:
    _choice(errors, spec, "externalTrafficPolicy", ("Cluster", "Local"))
    port, path = spec.get("healthCheckNodePort", 0), "spec.healthCheckNodePort"
    if not needs_health_check_port(spec):
        if port:
            what = (
                "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is"
                " 'Local'"
            )
            errors.append(invalid(path, port, what))
    elif port:
        # Without a port one is allocated; only a wrong one is refused here.
        invalid_each(errors, path, port, port_number(port))
    policy = spec.get("internalTrafficPolicy")
    if policy is not None and policy not in ("Cluster", "Local"):
        errors.append(not_supported("spec.internalTrafficPolicy", policy, ("Cluster", "Local")))
    distribution = spec.get("trafficDistribution")
    if distribution is not None and distribution not in _DISTRIBUTIONS:
        path = "spec.trafficDistribution"
        errors.append(not_supported(path, distribution, _DISTRIBUTIONS))


def _choice(errors: Errors, spec: Obj, name: str, choices: tuple[str, ...]) -> None:
    policy = spec.get(name)
    if not is_external(spec):
        if policy:
            what = "may only be set for externally-accessible services"
            errors.append(invalid(f"spec.{name}", policy, what))
    elif policy not in choices:
        errors.append(not_supported(f"spec.{name}", policy, choices))


def _same_ips(errors: Errors, new: Obj, old: Obj) -> None:
    if _is_headless(new) and _is_headless(old):
        return
    now, before = new.get("clusterIPs", []), old.get("clusterIPs", [])
    path, once = "spec.clusterIPs", "may not change once set"
    if len(now) == len(before):
        for place, (one, was) in enumerate(zip(now, before, strict=True)):
            if one != was:
                errors.append(invalid(f"{path}[{place}]", now, once))
        return
    if before and not now:
        shown: Any = None
        errors.append(invalid(f"{path}[0]", shown, "primary clusterIP can not be unset"))
    elif before and now[0] != before[0]:
        errors.append(invalid(f"{path}[0]", now, once))
    if len(before) > len(now) == 1 and new.get("ipFamilyPolicy") != "SingleStack":
        what = "must be set to 'SingleStack' when releasing the secondary clusterIP"
        errors.append(invalid("spec.ipFamilyPolicy", new.get("ipFamilyPolicy"), what))


def _same_families(errors: Errors, new: Obj, old: Obj) -> None:
    if _is_headless(new) or _is_headless(old):
        return
    now, before = new.get("ipFamilies", []), old.get("ipFamilies", [])
    path, once = "spec.ipFamilies[0]", "may not change once set"
    if len(now) == len(before):
        for one, was in zip(now, before, strict=True):
            if one != was:
                errors.append(invalid(path, now, once))
        return
    if len(before) > len(now) and not new.get("clusterIPs"):
        errors.append(invalid(path, now, "primary ipFamily can not be unset"))
    if now and before and now[0] != before[0]:
        errors.append(invalid(path, new.get("clusterIPs"), once))
    if len(before) > len(now) == 1 and new.get("ipFamilyPolicy") != "SingleStack":
        what = "must be set to 'SingleStack' when releasing the secondary ipFamily"
        errors.append(invalid("spec.ipFamilyPolicy", new.get("ipFamilyPolicy"), what))


def _ingress(errors: Errors, one: Obj, known: Sequence[str], path: str) -> None:
    address, mode, host = one.get("ip"), one.get("ipMode"), one.get("hostname")
    if address:
        valid_ip(errors, f"{path}.ip", address, known)
    if mode is None:
        if address:
            what = "must be specified when `ip` is set"
            errors.append(required(f"{path}.ipMode", what))
    elif not address:
        what = "may not be specified when `ip` is not set"
        errors.append(forbidden_field(f"{path}.ipMode", what))
    elif mode not in ("Proxy", "VIP"):
        errors.append(not_supported(f"{path}.ipMode", mode, ("Proxy", "VIP")))
    if host:
        invalid_each(errors, f"{path}.hostname", host, dns_subdomain(host))
        if parsed_ip(host) is not None:
            what = "must be a DNS name, not an IP address"
            errors.append(invalid(f"{path}.hostname", host, what))
