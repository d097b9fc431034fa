"""Defaults of containers: probes, hooks, ports, environment, image policy."""

from typing import Any

from kubeclient.objects import Obj
from localkube.apiserver.defaults.images import pull_policy

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
