"""Containers of a pod: regular ones, init containers and sidecars, ephemeral ones."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kubeclient.objects import Obj
from localkube.apiserver.validation.environment import environment
from localkube.apiserver.validation.errors import (
    Errors,
    duplicate,
    forbidden_field,
    invalid,
    invalid_each,
    not_found,
    not_supported,
    required,
    too_long,
)
from localkube.apiserver.validation.formats import dns_label, port_name, port_number
from localkube.apiserver.validation.mounts import devices, mounts
from localkube.apiserver.validation.probes import lifecycle, probes
from localkube.apiserver.validation.resources import container_resources
from localkube.apiserver.validation.security import container_security
from localkube.apiserver.validation.volume_sources import pull_policy

PROTOCOLS = ("SCTP", "TCP", "UDP")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_RULES_NEED_POLICY = "must specify restartPolicy when restart rules are used"
_RULES_MAX = 20
_EXIT_CODES_MAX = 255
_NOT_EPHEMERAL = (
    *("ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules"),
    *("livenessProbe", "readinessProbe", "startupProbe", "lifecycle"),
)
_ONLY_SIDECARS = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")


@dataclass(frozen=True, slots=True)
class Around:
    """What a container's rules need to know of its pod."""

    volumes: Mapping[str, Obj]
    claims: Collection[str]
    grace: int
    restart_policy: str
    host_users: bool


def containers(errors: Errors, listed: list[Obj], around: Around, path: str) -> None:
    if not listed:
        errors.append(required(path))
        return
    names: set[str] = set()
    for place, container in enumerate(listed):
        at = f"{path}[{place}]"
        _common(errors, container, around, at)
        if container["name"] in names:
            errors.append(duplicate(f"{at}.name", container["name"]))
        names.add(container["name"])
        if "lifecycle" in container:
            lifecycle(errors, container["lifecycle"], around.grace, f"{at}.lifecycle")
        probes(errors, container, around.grace, at)
        if "restartPolicy" in container or "restartPolicyRules" in container:
            _restart(errors, container, at)
    host_ports(errors, listed, path)


def init_containers(errors: Errors, spec: Obj, around: Around, path: str) -> None:
    names = {container["name"] for container in spec.get("containers", ())}
    for place, container in enumerate(spec.get("initContainers", ())):
        at = f"{path}[{place}]"
        _common(errors, container, around, at)
        sidecar = container.get("restartPolicy") == "Always"
        _init_restart(errors, container, at)
        if container["name"] in names:
            errors.append(duplicate(f"{at}.name", container["name"]))
        elif container["name"]:
            names.add(container["name"])
        # Counted from zero for each, as Kubernetes does: the path names the first container.
        host_ports(errors, [container], path)
        if sidecar:
            if "lifecycle" in container:
                lifecycle(errors, container["lifecycle"], around.grace, f"{at}.lifecycle")
            probes(errors, container, around.grace, at)
        else:
            for name in _ONLY_SIDECARS:
                if name in container:
                    what = "may not be set for init containers without restartPolicy=Always"
                    errors.append(forbidden_field(f"{at}.{name}", what))


def ephemeral_containers(errors: Errors, spec: Obj, around: Around, path: str) -> None:
    others = [*spec.get("containers", ()), *spec.get("initContainers", ())]
    targets = {container["name"] for container in others}
    names = set(targets)
    for place, container in enumerate(spec.get("ephemeralContainers", ())):
        at = f"{path}[{place}]"
        _common(errors, container, around, at)
        padded_image(errors, container, at)
        if container["name"] in names:
            errors.append(duplicate(f"{at}.name", container["name"]))
        names.add(container["name"])
        target = container.get("targetContainerName")
        if target and target not in targets:
            errors.append(not_found(f"{at}.targetContainerName", target))
        _only_ephemeral(errors, container, at)


def padded_image(errors: Errors, container: Obj, path: str) -> None:
    image = container.get("image", "")
    if image.strip() != image:
        what = "must not have leading or trailing whitespace"
        errors.append(invalid(f"{path}.image", image, what))


def host_ports(errors: Errors, listed: list[Obj], path: str) -> None:
    seen: set[str] = set()
    for place, container in enumerate(listed):
        for number, port in enumerate(container.get("ports", ())):
            if not port.get("hostPort"):
                continue
            key = f"{port['protocol']}/{port.get('hostIP', '')}/{port['hostPort']}"
            if key in seen:
                errors.append(duplicate(f"{path}[{place}].ports[{number}].hostPort", key))
            seen.add(key)


def _common(errors: Errors, container: Obj, around: Around, path: str) -> None:
    name = container["name"]
    if not name:
        errors.append(required(f"{path}.name"))
    elif dns_label(name):
        invalid_each(errors, f"{path}.name", name, dns_label(name))
    if not container.get("image"):
        errors.append(required(f"{path}.image"))
    policy = container["terminationMessagePolicy"]
    if policy not in _MESSAGE_POLICIES:
        at = f"{path}.terminationMessagePolicy"
        errors.append(not_supported(at, policy, _MESSAGE_POLICIES))
    if "ports" in container:
        _ports(errors, container["ports"], f"{path}.ports")
    if "env" in container or "envFrom" in container:
        environment(errors, container, path)
    if "volumeMounts" in container:
        mounts(errors, container, around.volumes, f"{path}.volumeMounts")
    _running(errors, container, around, path)


def _running(errors: Errors, container: Obj, around: Around, path: str) -> None:
    if "volumeDevices" in container:
        devices(errors, container, around.volumes, f"{path}.volumeDevices")
    pull_policy(errors, container["imagePullPolicy"], f"{path}.imagePullPolicy")
    if container["resources"]:
        container_resources(errors, container["resources"], around.claims, f"{path}.resources")
    if "resizePolicy" in container:
        _resize(errors, container["resizePolicy"], around.restart_policy, f"{path}.resizePolicy")
    if "securityContext" in container:
        context, at = container["securityContext"], f"{path}.securityContext"
        container_security(errors, context, at, host_users=around.host_users)


def _ports(errors: Errors, ports: list[Obj], path: str) -> None:
    names: set[str] = set()
    for place, port in enumerate(ports):
        name, number = port.get("name"), port["containerPort"]
        if name:
            complaints = port_name(name)
            invalid_each(errors, f"{path}[{place}].name", name, complaints)
            if not complaints and name in names:
                errors.append(duplicate(f"{path}[{place}].name", name))
            elif not complaints:
                names.add(name)
        if number == 0:
            errors.append(required(f"{path}[{place}].containerPort"))
        elif not 1 <= number <= 65535:
            at = f"{path}[{place}].containerPort"
            invalid_each(errors, at, number, port_number(number))
        on_host = port.get("hostPort", 0)
        if on_host != 0:
            invalid_each(errors, f"{path}[{place}].hostPort", on_host, port_number(on_host))
        if port["protocol"] not in PROTOCOLS:
            at = f"{path}[{place}].protocol"
            errors.append(not_supported(at, port["protocol"], PROTOCOLS))


def _resize(errors: Errors, policies: list[Obj], restart: str, path: str) -> None:
    seen: set[str] = set()
    for place, policy in enumerate(policies):
        name, what = policy["resourceName"], policy["restartPolicy"]
        if name in seen:
            errors.append(duplicate(f"{path}[{place}]", name))
        seen.add(name)
        _one_of(errors, name, ("cpu", "memory"), path)
        _one_of(errors, what, ("NotRequired", "RestartContainer"), path)
        if restart == "Never" and what != "NotRequired":
            why = "must be 'NotRequired' when `restartPolicy` is 'Never'"
            errors.append(invalid(path, what, why))


def _one_of(errors: Errors, value: str, choices: tuple[str, ...], path: str) -> None:
    if not value:
        errors.append(required(path))
    elif value not in choices:
        errors.append(not_supported(path, value, choices))


def _init_restart(errors: Errors, container: Obj, path: str) -> None:
    if "restartPolicy" not in container and "restartPolicyRules" not in container:
        return
    if "restartPolicy" not in container:
        errors.append(required(f"{path}.restartPolicy", _RULES_NEED_POLICY))
    elif container["restartPolicy"] != "Always":
        _restart(errors, container, path)
    elif "restartPolicyRules" in container:
        what = "restartPolicyRules are not allowed for init containers with restart policy Always"
        errors.append(forbidden_field(f"{path}.restartPolicyRules", what))


def _restart(errors: Errors, container: Obj, path: str) -> None:
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules", [])
    if policy is None:
        errors.append(required(f"{path}.restartPolicy", _RULES_NEED_POLICY))
    elif policy not in _RESTART_POLICIES:
        errors.append(not_supported(f"{path}.restartPolicy", policy, _RESTART_POLICIES))
    if len(rules) > _RULES_MAX:
        errors.append(too_long(f"{path}.restartPolicyRules", _RULES_MAX))
    for place, rule in enumerate(rules):
        _restart_rule(errors, rule, f"{path}.restartPolicyRules[{place}]")


def _restart_rule(errors: Errors, rule: Obj, path: str) -> None:
    if rule.get("action") != "Restart":
        errors.append(not_supported(f"{path}.action", rule.get("action", ""), ("Restart",)))
    codes = rule.get("exitCodes")
    if codes is None:
        errors.append(required(f"{path}.exitCodes", "must be specified"))
        return
    operator = codes.get("operator", "")
    if operator not in ("In", "NotIn"):
        errors.append(not_supported(f"{path}.exitCodes.operator", operator, ("In", "NotIn")))
    if len(codes.get("values", ())) > _EXIT_CODES_MAX:
        errors.append(too_long(f"{path}.exitCodes.values", _EXIT_CODES_MAX))


def _only_ephemeral(errors: Errors, container: Obj, path: str) -> None:
    what = "cannot be set for an Ephemeral Container"
    for name in _NOT_EPHEMERAL:
        if container.get(name):
            errors.append(forbidden_field(f"{path}.{name}", what))
    for place, mount in enumerate(container.get("volumeMounts", ())):
        for name in ("subPath", "subPathExpr"):
            if mount.get(name):
                errors.append(forbidden_field(f"{path}.volumeMounts[{place}].{name}", what))
