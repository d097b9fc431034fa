"""ClusterRoles, and what the aggregated ones among them amount to."""

from collections.abc import Mapping

import msgspec

from kubeclient.objects import Obj
from kubeclient.selectors import NOTHING, LabelSelector, SelectorError, from_object
from localkube.apiserver.security.rules import PolicyRule, parse_rules


class ClusterRole(msgspec.Struct, frozen=True):
    rules: tuple[PolicyRule, ...]  # as stored
    labels: Mapping[str, str]
    # Not None: it is aggregated, its rules are those of the roles that one of these selects.
    selectors: tuple[LabelSelector, ...] | None


def parse_cluster_role(found: Obj) -> ClusterRole:
    rule = found.get("aggregationRule")
    labels = (found.get("metadata") or {}).get("labels") or {}
    selectors = None
    if rule is not None:
        selectors = tuple(_selector(each) for each in rule.get("clusterRoleSelectors") or ())
    return ClusterRole(parse_rules(found.get("rules")), labels, selectors)


def _selector(found: Obj) -> LabelSelector:
    try:
        return from_object(found)
    except SelectorError:  # an unreadable selector grants nothing
        return NOTHING


def effective_rules(roles: Mapping[str, ClusterRole], name: str) -> tuple[PolicyRule, ...]:
    """The rules of a role, gathered first if it is aggregated. Each rule once, roles by name."""
    gathered: dict[PolicyRule, None] = {}
    _gather(roles, name, gathered, set())
    return tuple(gathered)


def _gather(
    roles: Mapping[str, ClusterRole], name: str, into: dict[PolicyRule, None], seen: set[str]
) -> None:
    role = roles[name]
    if role.selectors is None:
        into.update(dict.fromkeys(role.rules))
        return
    seen.add(name)  # roles may select one another in circles
    for other in sorted(roles):
        if other not in seen and any(s.matches(roles[other].labels) for s in role.selectors):
            _gather(roles, other, into, seen)
