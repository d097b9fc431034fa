"""Defaults of containers: probes, hooks, ports, environment, image policy."""

import re
from typing import Any

from kubeclient.objects import Obj
from localkube.apiserver.memory import remembered

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE = (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1))


def container(value: Obj) -> None:
    if "imagePullPolicy" not in value:
        value["imagePullPolicy"] = pull_policy(value.get("image", ""))
    value.setdefault("terminationMessagePath", "/dev/termination-log")
    value.setdefault("terminationMessagePolicy", "File")
    for port in value.get("ports", ()):
        port.setdefault("protocol", "TCP")
    for variable in value.get("env", ()):
        if "valueFrom" in variable:
            _source(variable["valueFrom"])
    for name in _PROBES:
        if name in value:
            _probe(value[name])
    if "lifecycle" in value:
        _lifecycle(value)


def requests_from_limits(value: Obj) -> None:
    """Pods only, not templates."""
    resources: Obj = value["resources"]
    limits = resources.get("limits")
    if limits:
        resources["requests"] = limits | resources.get("requests", {})


def host_ports(value: Obj) -> None:
    for port in value.get("ports", ()):
        if "containerPort" in port:
            port.setdefault("hostPort", port["containerPort"])


def field_ref(value: Any) -> None:
    value.setdefault("apiVersion", "v1")


def _source(value: Obj) -> None:
    if "fieldRef" in value:
        field_ref(value["fieldRef"])
    if "fileKeyRef" in value:
        value["fileKeyRef"].setdefault("optional", False)


def _lifecycle(value: Obj) -> None:
    lifecycle = value["lifecycle"]
    # Of a feature that this release has switched off, and so it does not keep it.
    lifecycle.pop("stopSignal", None)
    if not lifecycle:
        del value["lifecycle"]
    for hook in lifecycle.values():
        if "httpGet" in hook:
            _http_get(hook["httpGet"])


def _probe(value: Obj) -> None:
    for name, number in _PROBE:
        value.setdefault(name, number)
    value.setdefault("failureThreshold", 3)
    if "httpGet" in value:
        _http_get(value["httpGet"])
    if "grpc" in value:
        value["grpc"].setdefault("service", "")


def _http_get(value: Obj) -> None:
    value.setdefault("path", "/")
    value.setdefault("scheme", "HTTP")


# When an image is pulled, if nobody says: always for :latest, else only when it is absent.
_DOMAIN_PART = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"(?:{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PATH_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?:(?P<domain>{_DOMAIN})/)?(?P<path>{_PATH_PART}(?:/{_PATH_PART})*)"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?"
    r"(?:@(?P<digest>[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?",
    re.ASCII,
)
_IDENTIFIER = re.compile(r"[a-f0-9]{64}")


@remembered(4096)
def pull_policy(image: str) -> str:
    return "Always" if _tag(image) == "latest" else "IfNotPresent"


def _tag(image: str) -> str:
    """Empty for what is no image reference; validation says so elsewhere, if it matters."""
    # The longest legal name, tag and digest stay far below; the pattern must not meet more.
    if len(image) > 1024 or _IDENTIFIER.fullmatch(image):
        return ""
    found = _REFERENCE.fullmatch(image)
    if found is None:
        return ""
    return found["tag"] or ("" if found["digest"] else "latest")
