"""Resource lists of containers and pods: names, amounts, and requests that exceed their limits."""

from collections.abc import Callable, Collection, Mapping

from kubeclient import quantity
from kubeclient.objects import Obj
from localkube.apiserver.validation.errors import (
    NEGATIVE,
    Errors,
    duplicate,
    forbidden_field,
    invalid,
    invalid_each,
    not_found,
    not_supported,
    required,
)
from localkube.apiserver.validation.formats import cached, dns_label, label_key

_HUGE = "hugepages-"
_CONTAINER = frozenset({"cpu", "memory", "ephemeral-storage"})
_COUNTED = frozenset(
    {
        *("pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps"),
        *("persistentvolumeclaims", "services.nodeports", "services.loadbalancers"),
    }
)
_COMPUTED = frozenset(
    f"{prefix}{name}" for prefix in ("", "requests.", "limits.") for name in _CONTAINER
)
QUOTA_NAMES = _COUNTED | _COMPUTED | {"requests.storage"}
_STANDARD = QUOTA_NAMES | {"storage"}

# Appends what is wrong with a resource's name.
NameRule = Callable[[Errors, str, str], None]


def is_huge(name: str) -> bool:
    return name.startswith(_HUGE)


def is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def may_overcommit(name: str) -> bool:
    return is_native(name) and not is_huge(name)


def is_quota_name(name: str) -> bool:
    return name in QUOTA_NAMES or name.startswith((_HUGE, f"requests.{_HUGE}"))


@cached
def is_extended(name: str) -> bool:
    if is_native(name) or name.startswith("requests."):
        return False
    return not label_key(f"requests.{name}")


@cached
def is_whole(name: str) -> bool:
    """Whether only whole numbers of it make sense."""
    return name in _COUNTED or is_extended(name)


@cached
def _is_plain_container_resource(name: str) -> bool:
    """The common case, decided once per name: nothing is wrong with it."""
    errors: Errors = []
    container_resource_name(errors, name, "")
    return not errors


def resource_name(errors: Errors, name: str, path: str) -> None:
    complaints = label_key(name)
    invalid_each(errors, path, name, complaints)
    if not complaints and "/" not in name:
        standard = name in _STANDARD or name.startswith((_HUGE, f"requests.{_HUGE}"))
        if not standard:
            what = "must be a standard resource type or fully qualified"
            errors.append(invalid(path, name, what))


def container_resource_name(errors: Errors, name: str, path: str) -> None:
    resource_name(errors, name, path)
    if "/" not in name:
        if name not in _CONTAINER and not is_huge(name):
            errors.append(invalid(path, name, "must be a standard resource for containers"))
    elif not is_native(name) and not is_extended(name):
        errors.append(invalid(path, name, "doesn't follow extended resource name standard"))


def pod_resource_name(errors: Errors, name: str, path: str) -> None:
    before = len(errors)
    resource_name(errors, name, path)
    if len(errors) == before and name not in ("cpu", "memory") and not is_huge(name):
        errors.append(not_supported(path, name, ("cpu", _HUGE, "memory")))


def quota_resource_name(errors: Errors, name: str, path: str) -> None:
    resource_name(errors, name, path)
    if "/" not in name and not is_quota_name(name):
        errors.append(invalid(path, name, "must be a standard resource for quota"))


def resource_value(errors: Errors, name: str, text: str, path: str) -> None:
    amount = quantity.parse(text)
    if amount.nanos < 0:
        errors.append(invalid(path, text, NEGATIVE))
    if amount.nanos % quantity.NANOS and is_whole(name):
        errors.append(invalid(path, text, "must be an integer"))


def container_resources(errors: Errors, resources: Obj, claims: Collection[str], path: str) -> None:
    requirements(errors, resources, container_resource_name, claims, path)


def requirements(
    errors: Errors, resources: Obj, name_rule: NameRule, claims: Collection[str], path: str
) -> None:
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    for name, text in limits.items():
        _amount(errors, name, text, name_rule, f"{path}.limits")
    for name, text in requests.items():
        _amount(errors, name, text, name_rule, f"{path}.requests", limits)
    if any(map(is_huge, limits)) or any(map(is_huge, requests)):
        compute = ("cpu", "memory")
        if not any(name in limits or name in requests for name in compute):
            errors.append(forbidden_field(path, "HugePages require cpu or memory"))
    if "claims" in resources:
        _claims(errors, resources["claims"], claims, f"{path}.claims")


def _amount(
    errors: Errors,
    name: str,
    text: str,
    name_rule: NameRule,
    path: str,
    limits: Mapping[str, str] | None = None,
) -> None:
    """`limits` are given for requests only."""
    amount = quantity.parse(text)
    if name_rule is not container_resource_name or not _is_plain_container_resource(name):
        name_rule(errors, name, f"{path}[{name}]")
    if amount.nanos < 0 or amount.nanos % quantity.NANOS:
        resource_value(errors, name, text, f"{path}[{name}]")
    if limits is not None:
        _against_limit(errors, name, text, limits, path)
    if is_huge(name) and not _fills_pages(name, amount):
        what = f"{text} is not positive integer multiple of {name}"
        errors.append(invalid(f"{path}[{name}]", text, what))


def _against_limit(
    errors: Errors, name: str, text: str, limits: Mapping[str, str], path: str
) -> None:
    limit = limits.get(name)
    if limit is None:
        if not may_overcommit(name):
            what = "Limit must be set for non overcommitable resources"
            errors.append(required(f"{path.removesuffix('requests')}limits", what))
        return
    if limit == text:
        return
    asked, allowed = quantity.parse(text), quantity.parse(limit)
    if asked != allowed and not may_overcommit(name):
        errors.append(invalid(path, text, f"must be equal to {name} limit of {limit}"))
    elif asked > allowed:
        what = f"must be less than or equal to {name} limit of {limit}"
        errors.append(invalid(path, text, what))


def _fills_pages(name: str, amount: quantity.Quantity) -> bool:
    try:
        page = quantity.parse(name.removeprefix(_HUGE))
    except quantity.ParseError:
        return False
    if page.nanos <= 0 or page.nanos % quantity.NANOS:
        return False
    return quantity.value(amount) % quantity.value(page) == 0


def _claims(errors: Errors, asked: list[Obj], known: Collection[str], path: str) -> None:
    seen: set[str] = set()
    for place, claim in enumerate(asked):
        name, request = claim["name"], claim.get("request", "")
        if not name:
            errors.append(required(f"{path}[{place}]"))
            continue
        _claim(errors, name, request, seen, f"{path}[{place}]")
        if name not in known:
            listed = f": {', '.join(sorted(known))}" if known else " which is empty"
            what = f"must be one of the names in pod.spec.resourceClaims{listed}"
            errors.append(not_found(f"{path}[{place}]", name, what))


def _claim(errors: Errors, name: str, request: str, seen: set[str], path: str) -> None:
    """A claim is used whole once, or each of its requests once."""
    if name in seen:
        errors.append(duplicate(path, name))
        return
    key = name
    if request:
        invalid_each(errors, f"{path}.request", request, dns_label(request))
        key = f"{name}/{request}"
    if key in seen:
        errors.append(duplicate(path, key))
    elif not request:
        for other in seen:
            if other.partition("/")[0] == name:
                errors.append(duplicate(path, name))
    seen.add(key)
