"""Storage classes."""

from collections.abc import Mapping

from kubeclient.objects import Obj
from localkube.apiserver.validation.errors import (
    Errors,
    duplicate,
    forbidden_field,
    invalid,
    invalid_each,
    not_supported,
    required,
    too_long,
    unchanged,
)
from localkube.apiserver.validation.formats import dns_subdomain, label_key, size
from localkube.apiserver.validation.metadata import own_meta, own_meta_update

_PARAMETERS_MAX = 512
_PARAMETERS_SIZE_MAX = 256 * 1024


def create_class(obj: Obj) -> Errors:
    errors: Errors = []
    own_meta(errors, obj["metadata"], dns_subdomain, namespaced=False)
    provisioner = obj["provisioner"]
    if not provisioner:
        errors.append(required("provisioner"))
    else:
        lower = provisioner.lower()
        invalid_each(errors, "provisioner", lower, label_key(lower))
    _parameters(errors, obj.get("parameters", {}))
    if obj["reclaimPolicy"] not in ("", "Delete", "Retain"):
        policies = ("Delete", "Retain")
        errors.append(not_supported("reclaimPolicy", obj["reclaimPolicy"], policies))
    modes = ("Immediate", "WaitForFirstConsumer")
    if obj["volumeBindingMode"] not in modes:
        errors.append(not_supported("volumeBindingMode", obj["volumeBindingMode"], modes))
    _topologies(errors, obj.get("allowedTopologies", []))
    return errors


def update_class(new: Obj, old: Obj) -> Errors:
    errors = create_class(new)
    own_meta_update(errors, new["metadata"], old["metadata"])
    for name in ("parameters", "provisioner", "reclaimPolicy"):
        if new.get(name) != old.get(name):
            errors.append(forbidden_field(name, f"updates to {name} are forbidden."))
    name = "volumeBindingMode"
    unchanged(errors, new.get(name), old.get(name), name)
    return errors


def _parameters(errors: Errors, parameters: Mapping[str, str]) -> None:
    if len(parameters) > _PARAMETERS_MAX:
        errors.append(too_long("parameters", _PARAMETERS_MAX))
        return
    if "" in parameters:
        errors.append(invalid("parameters", "", "field can not be empty."))
    if sum(size(key) + size(value) for key, value in parameters.items()) > _PARAMETERS_SIZE_MAX:
        errors.append(too_long("parameters", _PARAMETERS_SIZE_MAX))


def _topologies(errors: Errors, topologies: list[Obj]) -> None:
    # The server compares with as many empty terms as there are terms: an empty one is too many.
    seen: list[dict[str, set[str]]] = [{} for _ in topologies]
    for place, term in enumerate(topologies):
        path = f"allowedTopologies[{place}].matchLabelExpressions"
        chosen: dict[str, set[str]] = {}
        for number, requirement in enumerate(term.get("matchLabelExpressions", ())):
            at, key = f"{path}[{number}]", requirement["key"]
            _topology_values(errors, requirement.get("values", []), f"{at}.values")
            invalid_each(errors, f"{at}.key", key, label_key(key))
            if key in chosen:
                errors.append(duplicate(f"{at}.key", key))
            chosen[key] = set(requirement.get("values", ()))
        errors += [duplicate(path, "") for one in seen if one == chosen]
        seen.append(chosen)


def _topology_values(errors: Errors, values: list[str], path: str) -> None:
    if not values:
        errors.append(required(path))
    for place, value in enumerate(values):
        if value in values[:place]:
            errors.append(duplicate(f"{path}[{place}]", value))
