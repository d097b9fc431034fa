"""Where a pod may run: affinities, node selectors, tolerations, spreading."""

from collections.abc import Sequence

from kubeclient.objects import Obj
from localkube.apiserver.validation.errors import (
    Errors,
    duplicate,
    forbidden_field,
    invalid,
    invalid_each,
    not_supported,
    positive,
    required,
)
from localkube.apiserver.validation.formats import (
    dns_label,
    dns_subdomain,
    label_key,
    label_value,
)
from localkube.apiserver.validation.own_limits import excess
from localkube.apiserver.validation.selectors import (
    NEEDS_VALUES,
    NO_OPERATOR,
    NO_VALUES,
    label_selector,
    named,
)

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_SELECTORS = ("labelSelector", "namespaceSelector")
_TERMS_MAX = 200
_NAMED_MAX = 10_000  # keys and values, in the selectors of all terms
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def affinity(errors: Errors, value: Obj, path: str) -> None:
    if "nodeAffinity" in value:
        _node_affinity(errors, value["nodeAffinity"], f"{path}.nodeAffinity")
    for name in ("podAffinity", "podAntiAffinity"):
        if name in value:
            _pod_affinity(errors, value[name], f"{path}.{name}")


def node_selector(errors: Errors, selector: Obj, path: str) -> None:
    terms = selector.get("nodeSelectorTerms", ())
    if not terms:
        what = "must have at least one node selector term"
        errors.append(required(f"{path}.nodeSelectorTerms", what))
    for place, term in enumerate(terms):
        _node_term(errors, term, f"{path}.nodeSelectorTerms[{place}]", check_values=True)


def tolerations(errors: Errors, listed: Sequence[Obj], path: str) -> None:
    for place, toleration in enumerate(listed):
        _toleration(errors, toleration, f"{path}[{place}]")


def taints(errors: Errors, listed: Sequence[Obj], path: str) -> None:
    seen: set[tuple[str, str]] = set()
    for place, taint in enumerate(listed):
        at, key, value = f"{path}[{place}]", taint["key"], taint.get("value", "")
        invalid_each(errors, f"{at}.key", key, label_key(key))
        complaints = label_value(value)
        if complaints:
            errors.append(invalid(f"{at}.value", value, ";".join(complaints)))
        _effect(errors, taint["effect"], f"{at}.effect")
        if (key, taint["effect"]) in seen:
            what = "taints must be unique by key and effect pair"
            errors.append(duplicate(at, taint, what))
        seen.add((key, taint["effect"]))


def _amount(errors: Errors, terms: Sequence[Obj], path: str) -> None:
    """Kubernetes has no limit. Schedulers compile all of it with each change of the pod."""
    selectors = [term.get(name) for term in terms for name in _SELECTORS]
    for count, most in ((len(terms), _TERMS_MAX), (sum(map(named, selectors)), _NAMED_MAX)):
        if count > most:
            errors.append(excess(path, count, most))


def spread_constraints(errors: Errors, listed: Sequence[Obj], path: str) -> None:
    _amount(errors, listed, path)
    for place, constraint in enumerate(listed):
        at, key = f"{path}[{place}]", constraint["topologyKey"]
        positive(errors, constraint["maxSkew"], f"{at}.maxSkew")
        if not key:
            errors.append(required(f"{at}.topologyKey", "can not be empty"))
        action = constraint["whenUnsatisfiable"]
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            choices = ("DoNotSchedule", "ScheduleAnyway")
            errors.append(not_supported(f"{at}.whenUnsatisfiable", action, choices))
        later = (
            (other["topologyKey"], other["whenUnsatisfiable"]) for other in listed[place + 1 :]
        )
        if (key, action) in later:
            shown = f"{{{key}, {action}}}"
            errors.append(duplicate(f"{at}.{{topologyKey, whenUnsatisfiable}}", shown))
        _spread_options(errors, constraint, at)
        _label_keys(errors, constraint, at)
        label_selector(errors, constraint.get("labelSelector"), f"{at}.labelSelector")


def _spread_options(errors: Errors, constraint: Obj, path: str) -> None:
    least = constraint.get("minDomains")
    if least is not None:
        positive(errors, least, f"{path}.minDomains")
        action = constraint["whenUnsatisfiable"]
        if action != "DoNotSchedule":
            what = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
            errors.append(invalid(f"{path}.minDomains", least, what))
    for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        policy = constraint.get(name)
        if policy is not None and policy not in ("Honor", "Ignore"):
            errors.append(not_supported(f"{path}.{name}", policy, ("Honor", "Ignore")))


def _label_keys(errors: Errors, term: Obj, path: str) -> None:
    match, mismatch = term.get("matchLabelKeys", []), term.get("mismatchLabelKeys", [])
    if not match and not mismatch:
        return
    selector = term.get("labelSelector")
    for name, keys in (("matchLabelKeys", match), ("mismatchLabelKeys", mismatch)):
        if keys and selector is None:
            what = "must not be specified when labelSelector is not set"
            errors.append(forbidden_field(f"{path}.{name}", what))
        elif keys:
            for place, key in enumerate(keys):
                invalid_each(errors, f"{path}.{name}[{place}]", key, label_key(key))
    _keys_not_selected(errors, match, selector or {}, path)
    for place, key in enumerate(match):
        if key in mismatch:
            what = "exists in both matchLabelKeys and mismatchLabelKeys"
            errors.append(invalid(f"{path}.matchLabelKeys[{place}]", key, what))


def _keys_not_selected(errors: Errors, match: list[str], selector: Obj, path: str) -> None:
    seen = set(selector.get("matchLabels", ()))
    for expression in selector.get("matchExpressions", ()):
        key = expression["key"]
        if key in match and key in seen:
            last = len(match) - 1 - match[::-1].index(key)
            what = "exists in both matchLabelKeys and labelSelector"
            errors.append(invalid(f"{path}[{last}]", key, what))
        seen.add(key)


def _node_affinity(errors: Errors, value: Obj, path: str) -> None:
    if _REQUIRED in value:
        node_selector(errors, value[_REQUIRED], f"{path}.{_REQUIRED}")
    for place, term in enumerate(value.get(_PREFERRED, ())):
        at = f"{path}.{_PREFERRED}[{place}]"
        _weight(errors, term["weight"], at)
        _node_term(errors, term["preference"], f"{at}.preference", check_values=False)


def _node_term(errors: Errors, term: Obj, path: str, *, check_values: bool) -> None:
    for place, requirement in enumerate(term.get("matchExpressions", ())):
        at = f"{path}.matchExpressions[{place}]"
        _node_requirement(errors, requirement, at, check_values=check_values)
    for place, requirement in enumerate(term.get("matchFields", ())):
        _node_field(errors, requirement, f"{path}.matchFields[{place}]")


def _node_requirement(errors: Errors, value: Obj, path: str, *, check_values: bool) -> None:
    operator, values = value["operator"], value.get("values", ())
    if operator in ("In", "NotIn"):
        if not values:
            errors.append(required(f"{path}.values", NEEDS_VALUES))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            errors.append(forbidden_field(f"{path}.values", NO_VALUES))
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            what = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            errors.append(required(f"{path}.values", what))
    else:
        errors.append(invalid(f"{path}.operator", operator, NO_OPERATOR))
    invalid_each(errors, f"{path}.key", value["key"], label_key(value["key"]))
    if check_values:
        for place, text in enumerate(values):
            invalid_each(errors, f"{path}.values[{place}]", text, label_value(text))


def _node_field(errors: Errors, value: Obj, path: str) -> None:
    values = value.get("values", ())
    if value["operator"] in ("In", "NotIn"):
        if len(values) != 1:
            what = (
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            )
            errors.append(required(f"{path}.values", what))
    else:
        errors.append(invalid(f"{path}.operator", value["operator"], NO_OPERATOR))
    if value["key"] != "metadata.name":
        errors.append(invalid(f"{path}.key", value["key"], "not a valid field selector key"))
        return
    for place, name in enumerate(values):
        invalid_each(errors, f"{path}.values[{place}]", name, dns_subdomain(name))


def _pod_affinity(errors: Errors, value: Obj, path: str) -> None:
    terms = [each["podAffinityTerm"] for each in value.get(_PREFERRED, ())]
    terms += value.get(_REQUIRED, ())
    _amount(errors, terms, path)
    for place, term in enumerate(value.get(_REQUIRED, ())):
        _pod_term(errors, term, f"{path}.{_REQUIRED}[{place}]")
    for place, weighted in enumerate(value.get(_PREFERRED, ())):
        at = f"{path}.{_PREFERRED}[{place}]"
        _weight(errors, weighted["weight"], at)
        _pod_term(errors, weighted["podAffinityTerm"], f"{at}.podAffinityTerm")


def _pod_term(errors: Errors, term: Obj, path: str) -> None:
    for name in _SELECTORS:
        label_selector(errors, term.get(name), f"{path}.{name}")
    for namespace in term.get("namespaces", ()):
        invalid_each(errors, f"{path}.namespace", namespace, dns_label(namespace))
    _label_keys(errors, term, path)
    key = term["topologyKey"]
    if not key:
        errors.append(required(f"{path}.topologyKey", "can not be empty"))
    invalid_each(errors, f"{path}.topologyKey", key, label_key(key))


def _weight(errors: Errors, weight: int, path: str) -> None:
    if not 1 <= weight <= 100:
        errors.append(invalid(f"{path}.weight", weight, "must be in the range 1-100"))


def _effect(errors: Errors, effect: str, path: str) -> None:
    if not effect:
        errors.append(required(path))
    elif effect not in EFFECTS:
        errors.append(not_supported(path, effect, EFFECTS))


def _toleration(errors: Errors, value: Obj, path: str) -> None:
    key, operator = value.get("key", ""), value.get("operator", "")
    text, effect = value.get("value", ""), value.get("effect", "")
    if key:
        invalid_each(errors, f"{path}.key", key, label_key(key))
    elif operator != "Exists":
        what = (
            "operator must be Exists when `key` is empty, which means"
            ' "match all values and all keys"'
        )
        errors.append(invalid(f"{path}.operator", operator, what))
    if "tolerationSeconds" in value and effect != "NoExecute":
        what = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        errors.append(invalid(f"{path}.effect", effect, what))
    if operator in ("Equal", ""):
        complaints = label_value(text)
        if complaints:
            errors.append(invalid(f"{path}.operator", text, ";".join(complaints)))
    elif operator == "Exists":
        if text:
            what = "value must be empty when `operator` is 'Exists'"
            errors.append(invalid(f"{path}.operator", text, what))
    else:
        known = ("Equal", "Exists", *(("Lt", "Gt") if operator in ("Lt", "Gt") else ()))
        errors.append(not_supported(f"{path}.operator", operator, known))
    if effect:
        _effect(errors, effect, f"{path}.effect")
