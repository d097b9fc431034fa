"""Requests for devices: classes, claims and their templates."""

from collections.abc import Mapping, Sequence
from functools import partial

from kubeclient.objects import Obj
from localkube.apiserver.validation.devices import (
    configuration,
    distinct,
    each,
    full_attribute_name,
    selectors,
    toleration,
)
from localkube.apiserver.validation.errors import (
    IMMUTABLE,
    Errors,
    invalid,
    invalid_each,
    not_supported,
    positive,
    required,
)
from localkube.apiserver.validation.formats import dns_label, dns_subdomain, long_name
from localkube.apiserver.validation.internal import printed
from localkube.apiserver.validation.metadata import (
    own_meta,
    own_meta_update,
    template_meta,
)
from localkube.apiserver.validation.resources import is_extended

# The choices of each request; none for one that has no choices.
RequestNames = Mapping[str, frozenset[str]]

REQUESTS_MAX = 32
_CONSTRAINTS_MAX = 32
CONFIG_MAX = 32
_CHOICES_MAX = 8
_MODES = ("All", "ExactCount")
_NO_REQUEST = (
    "must be the name of a request in the claim or the name of a request and a subrequest"
    " separated by '/'"
)
_ONE_OF = "exactly one of `exactly` or `firstAvailable` is required"


def create_class(obj: Obj) -> Errors:
    errors: Errors = []
    own_meta(errors, obj["metadata"], long_name, namespaced=False)
    spec = obj["spec"]
    selectors(errors, spec.get("selectors", []), "spec.selectors")
    each(errors, spec.get("config", []), CONFIG_MAX, configuration, "spec.config")
    name = spec.get("extendedResourceName")
    if name is not None and not is_extended(name):
        what = "must be a valid extended resource name"
        errors.append(invalid("spec.extendedResourceName", name, what))
    return errors


def update_class(new: Obj, old: Obj) -> Errors:
    errors = create_class(new)
    own_meta_update(errors, new["metadata"], old["metadata"])
    return errors


def create_claim(obj: Obj) -> Errors:
    errors: Errors = []
    own_meta(errors, obj["metadata"], dns_subdomain)
    _devices(errors, obj["spec"]["devices"], "spec.devices")
    return errors


def update_claim(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    own_meta(errors, new["metadata"], dns_subdomain)
    own_meta_update(errors, new["metadata"], old["metadata"])
    _same_spec(errors, new, old, "resource.ResourceClaimSpec")
    return errors


def create_template(obj: Obj) -> Errors:
    errors: Errors = []
    own_meta(errors, obj["metadata"], dns_subdomain)
    template_meta(errors, obj["spec"]["metadata"], "spec.metadata")
    _devices(errors, obj["spec"]["spec"]["devices"], "spec.spec.devices")
    return errors


def update_template(new: Obj, old: Obj) -> Errors:
    errors = create_template(new)
    own_meta_update(errors, new["metadata"], old["metadata"])
    _same_spec(errors, new, old, "resource.ResourceClaimTemplateSpec")
    return errors


def request_names(devices: Obj) -> RequestNames:
    return {
        request["name"]: frozenset(one["name"] for one in request.get("firstAvailable", ()))
        for request in devices.get("requests", ())
    }


def requests_of(errors: Errors, holder: Obj, names: RequestNames, path: str) -> None:
    """The requests that something is said of."""
    listed: Sequence[str] = holder.get("requests", [])
    path = f"{path}.requests"
    if each(errors, listed, REQUESTS_MAX, partial(request_ref, names=names), path):
        distinct(errors, listed, path)


def request_ref(errors: Errors, text: str, path: str, *, names: RequestNames) -> None:
    parts = text.split("/")
    if len(parts) > 2:
        errors.append(invalid(path, text, _NO_REQUEST))
        return
    for part in parts:
        invalid_each(errors, path, part, dns_label(part))
    if parts[0] not in names or (parts[1:] and parts[1] not in names[parts[0]]):
        errors.append(invalid(path, text, _NO_REQUEST))


def _same_spec(errors: Errors, new: Obj, old: Obj, type_name: str) -> None:
    if new["spec"] != old["spec"]:
        errors.append(invalid("spec", printed(new["spec"], type_name), IMMUTABLE))


def _devices(errors: Errors, devices: Obj, path: str) -> None:
    requests, names = devices.get("requests", []), request_names(devices)
    if each(errors, requests, REQUESTS_MAX, _request, f"{path}.requests"):
        distinct(errors, (request["name"] for request in requests), f"{path}.requests")
    constraint = partial(_constraint, names=names)
    listed = devices.get("constraints", [])
    each(errors, listed, _CONSTRAINTS_MAX, constraint, f"{path}.constraints")
    config = partial(_claim_configuration, names=names)
    each(errors, devices.get("config", []), CONFIG_MAX, config, f"{path}.config")


def _request(errors: Errors, request: Obj, path: str) -> None:
    invalid_each(errors, f"{path}.name", request["name"], dns_label(request["name"]))
    choices, exactly = request.get("firstAvailable", []), request.get("exactly")
    if not choices and exactly is None:
        errors.append(required(path, _ONE_OF))
    elif choices and exactly is not None:
        errors.append(invalid(path, "null", f"{_ONE_OF}, but multiple fields are set"))
    elif exactly is not None:
        _exact(errors, exactly, f"{path}.exactly")
    elif each(errors, choices, _CHOICES_MAX, _choice, f"{path}.firstAvailable"):
        distinct(errors, (choice["name"] for choice in choices), f"{path}.firstAvailable")


def _choice(errors: Errors, choice: Obj, path: str) -> None:
    invalid_each(errors, f"{path}.name", choice["name"], dns_label(choice["name"]))
    _exact(errors, choice, path)


def _exact(errors: Errors, request: Obj, path: str) -> None:
    name = request["deviceClassName"]
    if not name:
        errors.append(required(f"{path}.deviceClassName"))
    else:
        invalid_each(errors, f"{path}.deviceClassName", name, dns_subdomain(name))
    selectors(errors, request.get("selectors", []), f"{path}.selectors")
    mode, count = request.get("allocationMode", ""), request.get("count", 0)
    if mode == "ExactCount":
        positive(errors, count, f"{path}.count")
    elif mode != "All":
        errors.append(not_supported(f"{path}.allocationMode", mode, _MODES))
    elif count != 0:
        what = "must not be specified when allocationMode is 'All'"
        errors.append(invalid(f"{path}.count", count, what))
    for place, one in enumerate(request.get("tolerations", ())):
        toleration(errors, one, f"{path}.tolerations[{place}]")


def _constraint(errors: Errors, constraint: Obj, path: str, *, names: RequestNames) -> None:
    requests_of(errors, constraint, names, path)
    for name in ("matchAttribute", "distinctAttribute"):
        if name in constraint:
            full_attribute_name(errors, constraint[name], f"{path}.{name}")
            return
    errors.append(required(f"{path}.matchAttribute"))


def _claim_configuration(errors: Errors, config: Obj, path: str, *, names: RequestNames) -> None:
    requests_of(errors, config, names, path)
    configuration(errors, config, path)
