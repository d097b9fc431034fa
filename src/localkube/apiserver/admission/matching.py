"""Which writes a webhook or a policy is about: rules and selectors, and the kind that they mean."""

from collections.abc import Sequence
from dataclasses import dataclass

from kubeclient.objects import Obj
from kubeclient.selectors import NOTHING, LabelSelector, SelectorError, from_object
from localkube.apiserver.admission.attributes import Attributes, ClusterView
from localkube.apiserver.kinds import Kind, Kinds
from localkube.apiserver.status import failure


@dataclass(frozen=True, slots=True)
class Rule:
    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]  # resource and subresource, either may be "*"
    scope: str  # "*", "Namespaced", "Cluster"
    names: frozenset[str] = frozenset()  # of objects; none means all


@dataclass(frozen=True, slots=True)
class Criteria:
    rules: tuple[Rule, ...]
    namespace_selector: LabelSelector
    object_selector: LabelSelector
    equivalent: bool  # rules also mean the same resource in other versions
    excluded: tuple[Rule, ...] = ()


def rules_of(rows: Sequence[Obj] | None) -> tuple[Rule, ...]:
    return tuple(_rule(row) for row in rows or ())


def _rule(rule: Obj) -> Rule:
    resources = (each.partition("/") for each in rule.get("resources") or ())
    return Rule(
        operations=frozenset(rule.get("operations") or ()),
        groups=frozenset(rule.get("apiGroups") or ()),
        versions=frozenset(rule.get("apiVersions") or ()),
        resources=tuple((resource, subresource) for resource, _, subresource in resources),
        scope=rule.get("scope") or "*",
        names=frozenset(rule.get("resourceNames") or ()),
    )


def selector_of(selector: Obj | None) -> LabelSelector:
    try:
        return from_object(selector or {})
    except SelectorError:  # cannot be stored; if it is, it must not let a webhook loose on all
        return NOTHING


def matched_kind(
    criteria: Criteria, attributes: Attributes, cluster: ClusterView, kinds: Kinds
) -> Kind | None:
    """The kind as which the write is meant: another version of the same, perhaps. None if it is
    not meant. Without rules, every resource is."""
    if _kind_by_rules(criteria.excluded, criteria.equivalent, attributes, kinds) is not None:
        return None
    kind: Kind | None = attributes.kind
    if criteria.rules:
        kind = _kind_by_rules(criteria.rules, criteria.equivalent, attributes, kinds)
    if kind is None or not _matches_objects(criteria.object_selector, attributes):
        return None
    if not _matches_namespace(criteria.namespace_selector, attributes, cluster):
        return None
    return kind


def namespace_of(attributes: Attributes) -> str:
    """The namespace that selectors look at; for a Namespace, that is the object itself."""
    if attributes.kind.resource == "namespaces":
        return attributes.name
    return attributes.namespace


def _kind_by_rules(
    rules: tuple[Rule, ...], equivalent: bool, attributes: Attributes, kinds: Kinds
) -> Kind | None:
    if any(_matches_rule(rule, attributes, attributes.kind) for rule in rules):
        return attributes.kind
    if not equivalent or not rules:
        return None
    others = [
        kind
        for kind in kinds
        if kind.resource == attributes.kind.resource and kind is not attributes.kind
    ]
    for rule in rules:  # earlier rules win over earlier versions
        for kind in others:
            if _matches_rule(rule, attributes, kind):
                return kind
    return None


def _matches_rule(rule: Rule, attributes: Attributes, kind: Kind) -> bool:
    return (
        _among(rule.operations, attributes.operation.value)
        and _among(rule.groups, kind.group)
        and _among(rule.versions, kind.version)
        and _matches_scope(rule.scope, kind)
        and any(
            resource in ("*", kind.plural) and subresource in ("*", attributes.subresource)
            for resource, subresource in rule.resources
        )
        and (not rule.names or attributes.name in rule.names)
    )


def _among(choices: frozenset[str], found: str) -> bool:
    return found in choices or "*" in choices


def _matches_scope(scope: str, kind: Kind) -> bool:
    return scope == "*" or (scope == "Namespaced") == kind.namespaced


def _matches_objects(selector: LabelSelector, attributes: Attributes) -> bool:
    if selector.everything:
        return True
    things = (attributes.obj, attributes.old)
    return any(thing is not None and selector.matches(_labels(thing)) for thing in things)


def _matches_namespace(
    selector: LabelSelector, attributes: Attributes, cluster: ClusterView
) -> bool:
    name = namespace_of(attributes)
    if selector.everything or not name:
        return True
    itself = attributes.kind.resource == "namespaces" and not attributes.subresource
    if itself and attributes.obj is not None:  # not stored yet as it will be
        return selector.matches(_labels(attributes.obj))
    namespace = cluster.get("namespaces", "", name)
    if namespace is None:
        message = f'namespaces "{name}" not found'
        raise failure(404, "NotFound", message, details={"name": name, "kind": "namespaces"})
    return selector.matches(_labels(namespace))


def _labels(thing: Obj) -> dict[str, str]:
    return (thing.get("metadata") or {}).get("labels") or {}
