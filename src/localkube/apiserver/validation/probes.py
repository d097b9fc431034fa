"""Probes and lifecycle hooks."""

from kubeclient.objects import Obj
from localkube.apiserver.validation.errors import (
    NEGATIVE,
    Errors,
    forbidden_field,
    invalid,
    invalid_each,
    not_supported,
    required,
)
from localkube.apiserver.validation.formats import header_name, port_name, port_number

_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_NUMBERS = (
    *("initialDelaySeconds", "timeoutSeconds", "periodSeconds"),
    *("successThreshold", "failureThreshold"),
)


def probes(errors: Errors, container: Obj, grace: int, path: str) -> None:
    if "livenessProbe" in container:
        _succeeds_once(errors, container["livenessProbe"], grace, f"{path}.livenessProbe")
    if "readinessProbe" in container:
        _readiness(errors, container["readinessProbe"], grace, f"{path}.readinessProbe")
    if "startupProbe" in container:
        _succeeds_once(errors, container["startupProbe"], grace, f"{path}.startupProbe")


def lifecycle(errors: Errors, hooks: Obj, grace: int, path: str) -> None:
    for name in ("postStart", "preStop"):
        if name in hooks:
            _handler(errors, hooks[name], grace, f"{path}.{name}")


def port_number_or_name(errors: Errors, port: int | str, path: str) -> None:
    complaints = port_number(port) if isinstance(port, int) else port_name(port)
    invalid_each(errors, path, port, complaints)


def _succeeds_once(errors: Errors, probe: Obj, grace: int, path: str) -> None:
    _probe(errors, probe, grace, path)
    if probe["successThreshold"] != 1:
        errors.append(invalid(f"{path}.successThreshold", probe["successThreshold"], "must be 1"))


def _readiness(errors: Errors, probe: Obj, grace: int, path: str) -> None:
    _probe(errors, probe, grace, path)
    name = "terminationGracePeriodSeconds"
    if name in probe:
        errors.append(invalid(f"{path}.{name}", probe[name], "must not be set for readinessProbes"))


def _probe(errors: Errors, probe: Obj, grace: int, path: str) -> None:
    _handler(errors, probe, grace, path)
    for name in _NUMBERS:
        if probe.get(name, 0) < 0:
            errors.append(invalid(f"{path}.{name}", probe[name], NEGATIVE))
    name = "terminationGracePeriodSeconds"
    if probe.get(name, 1) <= 0:
        errors.append(invalid(f"{path}.{name}", probe[name], "must be greater than 0"))


def _handler(errors: Errors, handler: Obj, grace: int, path: str) -> None:
    found = [name for name in _HANDLERS if name in handler]
    if not found:
        errors.append(required(path, "must specify a handler type"))
        return
    _one_handler(errors, found[0], handler[found[0]], grace, f"{path}.{found[0]}")
    for name in found[1:]:
        what = "may not specify more than 1 handler type"
        errors.append(forbidden_field(f"{path}.{name}", what))


def _one_handler(errors: Errors, name: str, handler: Obj, grace: int, path: str) -> None:
    match name:
        case "exec":
            if not handler.get("command"):
                errors.append(required(f"{path}.command"))
        case "httpGet":
            _http_get(errors, handler, path)
        case "sleep":
            seconds = handler["seconds"]
            if not 0 <= seconds <= grace:
                what = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
                errors.append(invalid(path, seconds, what))
        case _:
            port_number_or_name(errors, handler["port"], f"{path}.port")


def _http_get(errors: Errors, handler: Obj, path: str) -> None:
    port_number_or_name(errors, handler["port"], f"{path}.port")
    if handler["scheme"] not in ("HTTP", "HTTPS"):
        errors.append(not_supported(f"{path}.scheme", handler["scheme"], ("HTTP", "HTTPS")))
    for header in handler.get("httpHeaders", ()):
        invalid_each(errors, f"{path}.httpHeaders", header["name"], header_name(header["name"]))
