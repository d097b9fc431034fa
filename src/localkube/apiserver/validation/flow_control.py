"""FlowSchemas and PriorityLevelConfigurations."""

import math
from collections.abc import Sequence

from kubeclient.objects import Obj
from localkube.apiserver.validation.errors import (
    Errors,
    duplicate,
    forbidden_field,
    in_range,
    invalid,
    invalid_each,
    not_supported,
    required,
)
from localkube.apiserver.validation.formats import dns_label, dns_subdomain
from localkube.apiserver.validation.metadata import object_meta
from localkube.flow_control import CATCH_ALL, EXEMPT, LEVELS, MANDATORY, SCHEMAS

_MOST_PRECEDENCE = 10_000
_MOST_QUEUES = 10_000_000
_MOST_BITS = 60
_METHODS = ("ByNamespace", "ByUser")
_KINDS = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}
_VERBS = (
    *("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"),
)
_OLD_ANNOTATION = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"


def create_schema(obj: Obj) -> Errors:
    errors: Errors = []
    object_meta(errors, obj["metadata"], dns_subdomain, namespaced=False)
    spec, name = obj["spec"], obj["metadata"].get("name", "")
    _precedence(errors, spec["matchingPrecedence"], name)
    method = spec.get("distinguisherMethod")
    if method is not None and method["type"] not in _METHODS:
        errors.append(not_supported("spec.distinguisherMethod.type", method, _METHODS))
    level = spec["priorityLevelConfiguration"]["name"]
    at = "spec.priorityLevelConfiguration.name"
    if level:
        invalid_each(errors, at, level, dns_subdomain(level))
    else:
        errors.append(required(at, "must reference a priority level"))
    for place, rule in enumerate(spec.get("rules", ())):
        _rule(errors, rule, f"spec.rules[{place}]")
    if name in MANDATORY and spec != SCHEMAS[name]:
        errors.append(invalid("spec", spec, f"spec of '{name}' must equal the fixed value"))
    return errors + schema_status(obj, obj)


def update_schema(new: Obj, old: Obj) -> Errors:
    return create_schema(new)


def schema_status(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    seen: list[str] = []
    for place, condition in enumerate((new.get("status") or {}).get("conditions", ())):
        kind, at = condition.get("type", ""), f"status.conditions[{place}].type"
        if kind in seen:
            errors.append(duplicate(at, kind))
        seen.append(kind)
        if not kind:
            errors.append(required(at))
    return errors


def create_level(obj: Obj) -> Errors:
    errors: Errors = []
    object_meta(errors, obj["metadata"], dns_subdomain, namespaced=False)
    if _OLD_ANNOTATION in obj["metadata"].get("annotations", {}):
        text = f"annotation '{_OLD_ANNOTATION}' is forbidden"
        errors.append(forbidden_field("metadata.annotations", text))
    spec, name = obj["spec"], obj["metadata"].get("name", "")
    if (name == EXEMPT) != (spec["type"] == "Exempt"):
        text = "must be 'Exempt' if and only if `name` is 'exempt'"
        errors.append(invalid("spec.type", spec["type"], text))
    _level(errors, spec)
    if name == EXEMPT and {**spec, "exempt": None} != {**LEVELS[EXEMPT], "exempt": None}:
        text = "spec of 'exempt' except the 'spec.exempt' field must equal the fixed value"
        errors.append(invalid("spec", spec, text))
    if name == CATCH_ALL and spec != LEVELS[CATCH_ALL]:
        errors.append(invalid("spec", spec, f"spec of '{name}' must equal the fixed value"))
    return errors + level_status(obj, obj)


def update_level(new: Obj, old: Obj) -> Errors:
    return create_level(new)


level_status = schema_status


def _precedence(errors: Errors, found: int, name: str) -> None:
    at = "spec.matchingPrecedence"
    if found <= 0:
        errors.append(invalid(at, found, "must be a positive value"))
    if found > _MOST_PRECEDENCE:
        errors.append(invalid(at, found, f"must not be greater than {_MOST_PRECEDENCE}"))
    if found == 1 and name != EXEMPT:
        text = "only the schema named 'exempt' may have matchingPrecedence 1"
        errors.append(invalid(at, found, text))


def _rule(errors: Errors, rule: Obj, at: str) -> None:
    subjects = rule.get("subjects", ())
    for place, subject in enumerate(subjects):
        _subject(errors, subject, f"{at}.subjects[{place}]")
    if not subjects:
        errors.append(required(f"{at}.subjects", "subjects must contain at least one value"))
    resources, others = rule.get("resourceRules", ()), rule.get("nonResourceRules", ())
    if not resources and not others:
        text = "at least one of resourceRules and nonResourceRules has to be non-empty"
        errors.append(required(at, text))
    for place, each in enumerate(resources):
        _resource_rule(errors, each, f"{at}.resourceRules[{place}]")
    for place, each in enumerate(others):
        _other_rule(errors, each, f"{at}.nonResourceRules[{place}]")


def _subject(errors: Errors, subject: Obj, at: str) -> None:
    kind = subject["kind"]
    if kind not in _KINDS:
        errors.append(not_supported(f"{at}.kind", kind, tuple(_KINDS)))
        return
    own = _KINDS[kind]
    if own not in subject:
        errors.append(required(f"{at}.{own}", f"{own} is required when subject kind is '{kind}'"))
    else:
        _named_subject(errors, kind, subject[own], f"{at}.{own}")
    for other, field in (
        ("ServiceAccount", "serviceAccount"),
        ("User", "user"),
        ("Group", "group"),
    ):
        if field != own and field in subject:
            text = f"{field} is forbidden when subject kind is not '{other}'"
            errors.append(forbidden_field(f"{at}.{field}", text))


def _named_subject(errors: Errors, kind: str, named: Obj, at: str) -> None:
    if not named["name"]:
        errors.append(required(f"{at}.name"))
    elif kind == "ServiceAccount" and named["name"] != "*":
        invalid_each(errors, f"{at}.name", named["name"], dns_subdomain(named["name"]))
    if kind != "ServiceAccount":
        return
    if named["namespace"]:
        invalid_each(errors, f"{at}.namespace", named["namespace"], dns_label(named["namespace"]))
    else:
        text = "must specify namespace for service account"
        errors.append(required(f"{at}.namespace", text))


def _verbs(errors: Errors, rule: Obj, at: str) -> None:
    verbs = rule.get("verbs", [])
    if not verbs:
        errors.append(required(f"{at}.verbs", "verbs must contain at least one value"))
    elif "*" in verbs:
        _alone(errors, verbs, f"{at}.verbs", "verbs")
    elif not {*verbs} <= {*_VERBS}:
        errors.append(not_supported(f"{at}.verbs", verbs, _VERBS))


def _alone(errors: Errors, values: Sequence[str], at: str, what: str) -> None:
    if len(values) > 1 and "*" in values:
        errors.append(invalid(at, values, f"if '*' is present, must not specify other {what}"))


def _resource_rule(errors: Errors, rule: Obj, at: str) -> None:
    _verbs(errors, rule, at)
    for field, one, many in (
        ("apiGroups", "api group", "api groups"),
        ("resources", "resource", "resources"),
    ):
        if not rule.get(field):
            text = f"resource rules must supply at least one {one}"
            errors.append(required(f"{at}.{field}", text))
        else:
            _alone(errors, rule[field], f"{at}.{field}", many)
    namespaces = rule.get("namespaces", [])
    if not namespaces and not rule.get("clusterScope"):
        text = "resource rules that are not cluster scoped must supply at least one namespace"
        errors.append(required(f"{at}.namespaces", text))
    elif "*" in namespaces:
        _alone(errors, namespaces, f"{at}.namespaces", "namespaces")
    else:
        for place, name in enumerate(namespaces):
            for complaint in dns_label(name):
                text = f"each member of this list must be '*' or a DNS-1123 label; {complaint}"
                errors.append(invalid(f"{at}.namespaces[{place}]", name, text))


def _other_rule(errors: Errors, rule: Obj, at: str) -> None:
    _verbs(errors, rule, at)
    paths = rule.get("nonResourceURLs", [])
    if not paths:
        text = "nonResourceURLs must contain at least one value"
        errors.append(required(f"{at}.nonResourceURLs", text))
    elif "*" in paths:
        _alone(errors, paths, f"{at}.nonResourceURLs", "non-resource URLs")
    else:
        for place, path in enumerate(paths):
            complaint = _path_complaint(path)
            if complaint:
                errors.append(invalid(f"{at}.nonResourceURLs[{place}]", path, complaint))


def _path_complaint(path: str) -> str:
    if not path:
        return "must not be empty"
    if path == "/":
        return ""
    if not path.startswith("/"):
        return "must start with slash"
    if " " in path:
        return "must not contain white-space"
    if "//" in path:
        return "must not contain double slash"
    if path.count("*") > 1 or ("*" in path and not path.endswith("/*")):
        return "wildcard can only do suffix matching"
    return ""


def _level(errors: Errors, spec: Obj) -> None:
    match spec["type"]:
        case "Exempt":
            if "limited" in spec:
                text = "must be nil if the type is not Limited"
                errors.append(forbidden_field("spec.limited", text))
            if "exempt" in spec:
                _shares(errors, spec["exempt"], "spec.exempt")
        case "Limited":
            if "exempt" in spec:
                errors.append(forbidden_field("spec.exempt", "must be nil if the type is Limited"))
            if "limited" not in spec:
                text = "must not be empty when type is Limited"
                errors.append(required("spec.limited", text))
            else:
                _limited(errors, spec["limited"])
        case other:
            errors.append(not_supported("spec.type", other, ("Exempt", "Limited")))


def _shares(errors: Errors, part: Obj, at: str) -> None:
    shares, lendable = part.get("nominalConcurrencyShares", 0), part.get("lendablePercent", 0)
    if shares < 0:
        text = "must be a non-negative integer"
        errors.append(invalid(f"{at}.nominalConcurrencyShares", shares, text))
    if not 0 <= lendable <= 100:
        errors.append(invalid(f"{at}.lendablePercent", lendable, in_range(0, 100)))


def _limited(errors: Errors, limited: Obj) -> None:
    _shares(errors, limited, "spec.limited")
    at, response = "spec.limited.limitResponse", limited["limitResponse"]
    match response["type"]:
        case "Reject":
            if "queuing" in response:
                text = "must be nil if limited.limitResponse.type is not Limited"
                errors.append(forbidden_field(f"{at}.queuing", text))
        case "Queue":
            if "queuing" not in response:
                text = "must not be empty if limited.limitResponse.type is Limited"
                errors.append(required(f"{at}.queuing", text))
            else:
                _queuing(errors, response["queuing"], f"{at}.queuing")
        case other:
            errors.append(not_supported(f"{at}.type", other, ("Queue", "Reject")))
    borrowing = limited.get("borrowingLimitPercent", 0)
    if borrowing < 0:
        text = "if specified, must be a non-negative integer"
        errors.append(invalid("spec.limited.borrowingLimitPercent", borrowing, text))


def _queuing(errors: Errors, queuing: Obj, at: str) -> None:
    length, queues, hand = (queuing[key] for key in ("queueLengthLimit", "queues", "handSize"))
    if length <= 0:
        errors.append(invalid(f"{at}.queueLengthLimit", length, "must be positive"))
    if queues <= 0:
        errors.append(invalid(f"{at}.queues", queues, "must be positive"))
    elif queues > _MOST_QUEUES:
        text = f"must not be greater than {_MOST_QUEUES}"
        errors.append(invalid(f"{at}.queues", queues, text))
    if hand <= 0:
        errors.append(invalid(f"{at}.handSize", hand, "must be positive"))
    elif hand > queues:
        text = f"should not be greater than queues ({queues})"
        errors.append(invalid(f"{at}.handSize", hand, text))
    elif math.ceil(math.log2(queues) * hand) > _MOST_BITS:
        text = (
            f"required entropy bits of deckSize {queues} and handSize {hand} should not be "
            f"greater than {_MOST_BITS}"
        )
        errors.append(invalid(f"{at}.handSize", hand, text))
