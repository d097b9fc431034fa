"""Policy rules of RBAC: what one allows, what one covers of another, how one is written."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

import msgspec

from kubeclient.objects import Obj
from localkube.apiserver.security.access import quoted


class PolicyRule(msgspec.Struct, frozen=True):
    verbs: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()


def parse_rules(found: Sequence[Obj] | None) -> tuple[PolicyRule, ...]:
    return tuple(
        PolicyRule(
            verbs=tuple(each.get("verbs") or ()),
            groups=tuple(each.get("apiGroups") or ()),
            resources=tuple(each.get("resources") or ()),
            names=tuple(each.get("resourceNames") or ()),
            urls=tuple(each.get("nonResourceURLs") or ()),
        )
        for each in found or ()
    )


def rule_object(rule: PolicyRule) -> Obj:
    """The rule as objects carry it."""
    fields = {
        "apiGroups": rule.groups,
        "resources": rule.resources,
        "resourceNames": rule.names,
        "nonResourceURLs": rule.urls,
        "verbs": rule.verbs,
    }
    return {key: list(values) for key, values in fields.items() if values or key == "verbs"}


def matches_resource(rule: PolicyRule, verb: str, group: str, resource: str) -> bool:
    """Whether it allows this on some name: see `rule.names`. A resource may be "pods/log"."""
    return (
        _has(rule.verbs, verb)
        and _has(rule.groups, group)
        and _has_resource(rule.resources, resource)
    )


def matches_url(rule: PolicyRule, verb: str, path: str) -> bool:
    return _has(rule.verbs, verb) and any(_url_covers(url, path) for url in rule.urls)


def _has(values: tuple[str, ...], wanted: str) -> bool:
    return wanted in values or "*" in values


def _has_resource(values: tuple[str, ...], wanted: str) -> bool:
    """`pods/*` is not a form of its own: it is the subresource that is called "*"."""
    if _has(values, wanted):
        return True
    _, slash, subresource = wanted.partition("/")
    return bool(slash) and f"*/{subresource}" in values


def _url_covers(owned: str, path: str) -> bool:
    return owned == path or (owned.endswith("*") and path.startswith(owned.rstrip("*")))


def size(rule: PolicyRule) -> int:
    """What it costs to look at the rule: its values, and the rule itself."""
    lists = (rule.verbs, rule.groups, rule.resources, rule.names, rule.urls)
    return 5 + sum(map(len, lists))


def parts(rule: PolicyRule) -> int:
    """How many rights it is: each verb on each thing."""
    things = len(rule.groups) * len(rule.resources) * (len(rule.names) or 1) + len(rule.urls)
    return len(rule.verbs) * things


def uncovered(owned: Iterable[PolicyRule], wanted: Iterable[PolicyRule]) -> list[PolicyRule]:
    """What of `wanted` is not in `owned`, as rules of one verb on one thing."""
    have = tuple(owned)
    return [
        part
        for rule in wanted
        for part in _broken_down(rule)
        if not any(_covers(each, part) for each in have)
    ]


def _broken_down(rule: PolicyRule) -> Iterator[PolicyRule]:
    for group, resource, verb in product(rule.groups, rule.resources, rule.verbs):
        for name in rule.names or ("",):
            yield PolicyRule((verb,), (group,), (resource,), (name,) if rule.names else ())
    for url, verb in product(rule.urls, rule.verbs):
        yield PolicyRule((verb,), urls=(url,))


def _covers(owner: PolicyRule, part: PolicyRule) -> bool:
    """`part` has one verb, and one resource (of at most one name) or one URL."""
    if not _has(owner.verbs, part.verbs[0]):
        return False
    if part.urls:
        # A rule for named resources does not cover a URL, whatever URLs it also lists.
        return not owner.names and any(_url_covers(url, part.urls[0]) for url in owner.urls)
    return (
        _has(owner.groups, part.groups[0])
        and _has_resource(owner.resources, part.resources[0])
        and (not owner.names or (bool(part.names) and part.names[0] in owner.names))
    )


def described(rules: Iterable[PolicyRule]) -> list[str]:
    """The rules as Kubernetes lists missing ones: the verbs of one thing together, sorted."""
    verbs: dict[PolicyRule, list[str]] = {}
    texts = set()
    for rule in rules:
        if rule.urls:
            texts.add(_compact(rule))
        else:
            verbs.setdefault(msgspec.structs.replace(rule, verbs=()), []).extend(rule.verbs)
    for rule, found in verbs.items():
        texts.add(_compact(msgspec.structs.replace(rule, verbs=tuple(found))))
    return sorted(texts)


def _compact(rule: PolicyRule) -> str:
    parts = (
        ("APIGroups", rule.groups),
        ("Resources", rule.resources),
        ("NonResourceURLs", rule.urls),
        ("ResourceNames", rule.names),
        ("Verbs", rule.verbs),
    )
    return "{" + ", ".join(f"{name}:{_listed(values)}" for name, values in parts if values) + "}"


def _listed(values: Iterable[str]) -> str:
    return "[" + " ".join(quoted(value) for value in values) + "]"
