"""What each identity may do, worked out from the roles of a real Kubernetes and a naive reading of
the documentation: nothing here asks the server, or shares code with it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.attack.openapi import Operation
from tests.localkube.apiserver.security.security_world import RECORDED

Json = Any
OWN, OTHER = "attacked", "kube-system"  # the namespace of the role bindings, and another one
ROLES: dict[str, list[Json]] = {
    role["metadata"]["name"]: role["rules"] for role in RECORDED["bootstrap"]["clusterroles"]
}
# Of everybody who has shown who he is.
_BASIC = ROLES["system:basic-user"]
_COLLECTION = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_SINGLE = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
# Whoever opens these runs something, whatever the method says.
_STREAMS = ("exec", "attach", "portforward")


@dataclass(frozen=True)
class Asked:
    """One cell of the table: an operation, in one namespace or in all."""

    method: str
    path: str
    verb: str
    group: str
    resource: str  # with its subresource: "pods/log"
    namespace: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}.{self.group} in {self.namespace or 'the cluster'}"


def asked(operation: Operation) -> Iterator[Asked]:
    """In its own namespace and in another one, where it is in a namespace at all."""
    spaces = (OWN, OTHER) if "{namespace}" in operation.path else ("",)
    for namespace in spaces:
        path = operation.path.replace("{namespace}", namespace).replace("{name}", "nobody")
        parts = operation.path.strip("/").split("/")
        group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
        if rest[:2] == ["namespaces", "{namespace}"]:
            rest = rest[2:]
        resource, *below = rest
        subresource = below[1] if len(below) > 1 else ""
        verb = (_SINGLE if below else _COLLECTION)[operation.method]
        if subresource in _STREAMS:
            verb = "create"
        if resource == "namespaces" and not group and below:
            namespace = "nobody"  # a namespace is in itself
        combined = f"{resource}/{subresource}" if subresource else resource
        yield Asked(operation.method, path, verb, group, combined, namespace)


def allows(rules: list[Json], cell: Asked) -> bool:
    """A rule of RBAC, read literally. None of the rules used here names objects."""
    subresource = cell.resource.partition("/")[2]
    names = {cell.resource, "*", *([f"*/{subresource}"] if subresource else [])}
    return any(
        {cell.verb, "*"} & set(rule.get("verbs", ()))
        and {cell.group, "*"} & set(rule.get("apiGroups", ()))
        and names & set(rule.get("resources", ()))
        and not rule.get("resourceNames")
        for rule in rules
    )


def expected(role: str, cell: Asked, *, everywhere: bool) -> bool:
    """Whether somebody with this role, in OWN or everywhere, gets past authorization."""
    rules = list(_BASIC)
    if role and (everywhere or cell.namespace == OWN):
        rules += ROLES[role]
    return allows(rules, cell)


def node_never(cell: Asked) -> bool:
    """What no node may do, whatever runs on it: all that the role of nodes does not name; and, as
    nothing runs on this one, all that is about other people's objects."""
    if not allows(ROLES["system:node"] + _BASIC, cell):
        return True
    foreign = (
        *("secrets", "configmaps", "persistentvolumeclaims", "persistentvolumes", "pods"),
        *("volumeattachments", "resourceclaims", "serviceaccounts"),
    )
    return cell.resource.partition("/")[0] in foreign and cell.verb != "create"
