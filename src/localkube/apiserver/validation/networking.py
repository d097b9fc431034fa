"""Ingresses and network policies."""

import ipaddress

from kubeclient.objects import Obj
from localkube.apiserver.validation.addresses import (
    is_cidr,
    parsed_ip,
    valid_cidr,
    valid_ip,
)
from localkube.apiserver.validation.errors import (
    Errors,
    forbidden_field,
    invalid,
    invalid_each,
    not_supported,
    required,
)
from localkube.apiserver.validation.formats import (
    dns_1035_label,
    dns_subdomain,
    path_segment,
    port_name,
    port_number,
    wildcard_subdomain,
)
from localkube.apiserver.validation.metadata import own_meta, own_meta_update
from localkube.apiserver.validation.selectors import label_selector

_CLASS_ANNOTATION = "kubernetes.io/ingress.class"
_CONTROLLER_MAX = 250
_NOT_IN_PATHS = ("//", "/./", "/../", "%2f", "%2F")
_NOT_AT_ENDS = ("/..", "/.")
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_PROTOCOLS = ("TCP", "UDP", "SCTP")
_NO_ADDRESS = "must be a DNS name, not an IP address"


def create_ingress(obj: Obj) -> Errors:
    errors: Errors = []
    own_meta(errors, obj["metadata"], dns_subdomain)
    _ingress_spec(errors, obj["spec"])
    named = obj["metadata"].get("annotations", {}).get(_CLASS_ANNOTATION)
    if named is not None and obj["spec"].get("ingressClassName", named) != named:
        what = "must match `ingressClassName` when both are specified"
        errors.append(invalid(f"annotations.{_CLASS_ANNOTATION}", named, what))
    return errors


def update_ingress(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    own_meta_update(errors, new["metadata"], old["metadata"])
    own_meta(errors, new["metadata"], dns_subdomain)
    _ingress_spec(errors, new["spec"])
    return errors


def ingress_status(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    own_meta_update(errors, new["metadata"], old["metadata"])
    before = old.get("status", {}).get("loadBalancer", {}).get("ingress", ())
    known = [one["ip"] for one in before if one.get("ip")]
    listed = new.get("status", {}).get("loadBalancer", {}).get("ingress", ())
    for place, one in enumerate(listed):
        path = f"status.loadBalancer.ingress[{place}]"
        if one.get("ip"):
            valid_ip(errors, f"{path}.ip", one["ip"], known)
        host = one.get("hostname")
        if host:
            invalid_each(errors, f"{path}.hostname", host, dns_subdomain(host))
            if parsed_ip(host) is not None:
                errors.append(invalid(f"{path}.hostname", host, _NO_ADDRESS))
    return errors


def create_network_policy(obj: Obj) -> Errors:
    errors: Errors = []
    own_meta(errors, obj["metadata"], dns_subdomain)
    _policy_spec(errors, obj["spec"], [])
    return errors


def update_network_policy(new: Obj, old: Obj) -> Errors:
    errors = create_network_policy(new)
    own_meta_update(errors, new["metadata"], old["metadata"])
    known: list[str] = []
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for rule in old["spec"].get(direction, ()):
            blocks = (peer["ipBlock"] for peer in rule.get(peers, ()) if "ipBlock" in peer)
            for block in blocks:
                known += [block["cidr"], *block.get("except", ())]
    _policy_spec(errors, new["spec"], known)
    return errors


def _ingress_spec(errors: Errors, spec: Obj) -> None:
    rules = spec.get("rules", [])
    if not rules and "defaultBackend" not in spec:
        what = "either `defaultBackend` or `rules` must be specified"
        errors.append(invalid("spec", None, what))
    if "defaultBackend" in spec:
        _backend(errors, spec["defaultBackend"], "spec.defaultBackend")
    for place, rule in enumerate(rules):
        _ingress_rule(errors, rule, f"spec.rules[{place}]")
    for place, one in enumerate(spec.get("tls", ())):
        for number, host in enumerate(one.get("hosts", ())):
            check = wildcard_subdomain if "*" in host else dns_subdomain
            invalid_each(errors, f"spec.tls[{place}].hosts[{number}]", host, check(host))
        secret = one.get("secretName")
        if secret:
            invalid_each(errors, f"spec.tls[{place}].secretName", secret, dns_subdomain(secret))
    name = spec.get("ingressClassName")
    if name is not None:
        invalid_each(errors, "spec.ingressClassName", name, dns_subdomain(name))


def _ingress_rule(errors: Errors, rule: Obj, path: str) -> None:
    host = rule.get("host")
    if host:
        if parsed_ip(host) is not None:
            errors.append(invalid(f"{path}.host", host, _NO_ADDRESS))
        check = wildcard_subdomain if "*" in host else dns_subdomain
        invalid_each(errors, f"{path}.host", host, check(host))
    if "http" not in rule:
        return
    paths = rule["http"].get("paths", ())
    if not paths:
        errors.append(required(f"{path}.http.paths"))
    for place, one in enumerate(paths):
        _ingress_path(errors, one, f"{path}.http.paths[{place}]")


def _ingress_path(errors: Errors, one: Obj, path: str) -> None:
    kind, text, at = one.get("pathType"), one.get("path", ""), f"{path}.path"
    if kind is None:
        errors.append(required(f"{path}.pathType", "pathType must be specified"))
        return
    if kind not in _PATH_TYPES:
        errors.append(not_supported(f"{path}.pathType", kind, _PATH_TYPES))
    elif kind == "ImplementationSpecific":
        if text and not text.startswith("/"):
            errors.append(invalid(at, text, "must be an absolute path"))
    else:
        if not text.startswith("/"):
            errors.append(invalid(at, text, "must be an absolute path"))
        for part in _NOT_IN_PATHS:
            if part in text:
                errors.append(invalid(at, text, f"must not contain '{part}'"))
        for end in _NOT_AT_ENDS:
            if text.endswith(end):
                errors.append(invalid(at, text, f"cannot end with '{end}'"))
    _backend(errors, one["backend"], f"{path}.backend")


def _backend(errors: Errors, backend: Obj, path: str) -> None:
    if "resource" in backend and "service" in backend:
        errors.append(invalid(path, "", "cannot set both resource and service backends"))
    elif "resource" in backend:
        _reference(errors, backend["resource"], f"{path}.resource")
    elif "service" in backend:
        _service_backend(errors, backend["service"], path)
    else:
        errors.append(invalid(path, "", "resource or service backend is required"))


def _service_backend(errors: Errors, service: Obj, path: str) -> None:
    name, port = service["name"], service.get("port", {})
    if not name:
        errors.append(required(f"{path}.service.name"))
    else:
        invalid_each(errors, f"{path}.service.name", name, dns_1035_label(name))
    if port.get("name") and port.get("number"):
        errors.append(invalid(path, "", "cannot set both port name & port number"))
    elif port.get("name"):
        at = f"{path}.service.port.name"
        invalid_each(errors, at, port["name"], port_name(port["name"]))
    elif port.get("number"):
        at = f"{path}.service.port.number"
        invalid_each(errors, at, port["number"], port_number(port["number"]))
    else:
        errors.append(required(path, "port name or number is required"))


def _reference(errors: Errors, reference: Obj, path: str) -> None:
    group = reference.get("apiGroup")
    if group is not None:
        invalid_each(errors, f"{path}.apiGroup", group, dns_subdomain(group))
    for name in ("kind", "name"):
        if not reference[name]:
            errors.append(required(f"{path}.{name}"))
        else:
            complaints = path_segment(reference[name])
            invalid_each(errors, f"{path}.{name}", reference[name], complaints)


def _policy_spec(errors: Errors, spec: Obj, known: list[str]) -> None:
    label_selector(errors, spec["podSelector"], "spec.podSelector")
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for place, rule in enumerate(spec.get(direction, ())):
            path = f"spec.{direction}[{place}]"
            for number, port in enumerate(rule.get("ports", ())):
                _policy_port(errors, port, f"{path}.ports[{number}]")
            for number, peer in enumerate(rule.get(peers, ())):
                _peer(errors, peer, known, f"{path}.{peers}[{number}]")
    types = spec.get("policyTypes", ())
    if len(types) > 2:
        what = "may not specify more than two policyTypes"
        errors.append(invalid("spec.policyTypes", types, what))
        return
    for place, kind in enumerate(types):
        if kind not in ("Ingress", "Egress"):
            path = f"spec.policyTypes[{place}]"
            errors.append(not_supported(path, kind, ("Ingress", "Egress")))


def _policy_port(errors: Errors, port: Obj, path: str) -> None:
    if port["protocol"] not in _PROTOCOLS:
        errors.append(not_supported(f"{path}.protocol", port["protocol"], _PROTOCOLS))
    first, last, at = port.get("port"), port.get("endPort"), f"{path}.endPort"
    if first is None:
        if last is not None:
            what = "may not be specified when `port` is not specified"
            errors.append(invalid(at, last, what))
    elif isinstance(first, int):
        invalid_each(errors, f"{path}.port", first, port_number(first))
        if last is not None:
            if last < first:
                errors.append(invalid(at, first, "must be greater than or equal to `port`"))
            invalid_each(errors, at, last, port_number(last))
    else:
        if last is not None:
            what = "may not be specified when `port` is non-numeric"
            errors.append(invalid(at, last, what))
        invalid_each(errors, f"{path}.port", first, port_name(first))


def _peer(errors: Errors, peer: Obj, known: list[str], path: str) -> None:
    selectors = [name for name in ("podSelector", "namespaceSelector") if name in peer]
    for name in selectors:
        label_selector(errors, peer[name], f"{path}.{name}")
    if "ipBlock" in peer:
        _ip_block(errors, peer["ipBlock"], known, f"{path}.ipBlock")
        if selectors:
            what = "may not specify both ipBlock and another peer"
            errors.append(forbidden_field(path, what))
    elif not selectors:
        errors.append(required(path, "must specify a peer"))


def _ip_block(errors: Errors, block: Obj, known: list[str], path: str) -> None:
    if not block["cidr"]:
        errors.append(required(f"{path}.cidr"))
        return
    valid_cidr(errors, f"{path}.cidr", block["cidr"], known)
    whole = _network(block["cidr"])
    if whole is None:
        return
    for place, text in enumerate(block.get("except", ())):
        at = f"{path}.except[{place}]"
        valid_cidr(errors, at, text, known)
        part = _network(text)
        if part is None:
            continue
        inside = part.network_address in whole and whole.prefixlen < part.prefixlen
        if not inside:
            errors.append(invalid(at, text, "must be a strict subset of `cidr`"))


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    if not is_cidr(text):
        return None
    base, _, bits = text.partition("/")
    address = parsed_ip(base)
    length = int(bits) - (96 if ":" in base and address is not None and address.version == 4 else 0)
    return ipaddress.ip_network(f"{address}/{max(length, 0)}", strict=False)
