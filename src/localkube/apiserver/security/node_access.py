"""What a node may do, judged before RBAC: what its own pods need, and nothing of other nodes.

The words are those of Kubernetes' node authorizer. Where that one leaves a check of a named
object to admission, it is made here already; node_creation.py has what only the body shows.
"""

from collections.abc import Callable, Iterable
from typing import Protocol, TypeAlias

from kubeclient.objects import Obj
from localkube.apiserver.request import User
from localkube.apiserver.security.access import (
    ALLOWED,
    DENIED,
    Access,
    Verdict,
    quoted,
    required_field,
)
from localkube.apiserver.security.bootstrap_rules import KUBERNETES_ROLES
from localkube.apiserver.security.pod_references import references
from localkube.apiserver.security.rules import matches_resource, parse_rules

_PREFIX = "system:node:"
_LEASE_NAMESPACE = "kube-node-lease"
_OWN_VERBS = frozenset({"get", "create", "update", "patch", "delete"})
_READ_VERBS = frozenset({"get", "list", "watch"})
_RULES = parse_rules(KUBERNETES_ROLES["system:node"])


class Nodes(Protocol):
    """What has to be known of the pods to judge a node."""

    def node_of_pod(self, namespace: str, name: str) -> str | None:
        """The node that the pod is bound to; None if there is no such pod."""

    def pods_on(self, node: str) -> Iterable[Obj]: ...

    def spec_of(self, resource: str, name: str) -> Obj:
        """Of an object without a namespace; empty if there is none."""


def node_of(user: User) -> str | None:
    """The node that the user is, "" for one without a name, None for anybody else."""
    if user.name.startswith(_PREFIX) and "system:nodes" in user.groups:
        return user.name[len(_PREFIX) :]
    return None


def judge(node: str, access: Access, nodes: Nodes) -> Verdict:
    if not node:
        return Verdict(False, f"unknown node for user {quoted(_PREFIX)}")
    divided = _DIVIDED.get((access.group, access.resource))
    if divided is not None and not access.path:
        return divided(node, access, nodes)
    combined = access.resource
    if access.subresource:
        combined = f"{combined}/{access.subresource}"
    if any(matches_resource(rule, access.verb, access.group, combined) for rule in _RULES):
        return ALLOWED
    return DENIED


def _unrelated(node: str) -> Verdict:
    return Verdict(False, f"no relationship found between node '{node}' and this object")


def _judge_node(node: str, access: Access, nodes: Nodes) -> Verdict:
    verb, name = access.verb, access.name
    if access.subresource not in ("", "status") or (access.subresource and verb in _READ_VERBS):
        return DENIED
    if verb in _READ_VERBS:
        what = quoted(name).replace('"', "'") if name else "all nodes"
        why = f"node '{node}' cannot read {what}, only its own Node object"
        return ALLOWED if name == node else Verdict(False, why)
    if verb in ("update", "patch"):
        why = f"node {quoted(node)} is not allowed to modify node {quoted(name)}"
        return ALLOWED if name == node else Verdict(False, why)
    return ALLOWED if verb == "create" and not access.subresource else DENIED


def _judge_pod(node: str, access: Access, nodes: Nodes) -> Verdict:
    what = (access.subresource, access.verb)
    if what == ("", "create"):
        return ALLOWED
    if what in (("", "list"), ("", "watch")):
        if required_field(access.field_selector, "spec.nodeName") == node:
            return ALLOWED
        if not access.name:
            return Verdict(False, "can only list/watch pods with spec.nodeName field selector")
        what = ("", "get")
    own = nodes.node_of_pod(access.namespace, access.name) == node
    if what == ("", "get"):
        return ALLOWED if own else _unrelated(node)
    act = _POD_ACTS.get(what)
    if act is None:
        return DENIED
    why = f"node {quoted(node)} can only {act} with spec.nodeName set to itself"
    return ALLOWED if own else Verdict(False, why)


_POD_ACTS = {
    ("", "delete"): "delete pods",
    ("status", "update"): "update pod status for pods",
    ("status", "patch"): "update pod status for pods",
    ("eviction", "create"): "evict pods",
}


def _judge_read(node: str, access: Access, nodes: Nodes) -> Verdict:
    """Secrets and config maps: those that its pods refer to, one at a time."""
    if access.verb not in _READ_VERBS:
        return Verdict(False, "can only read resources of this type")
    if access.subresource:
        return Verdict(False, "cannot read subresource")
    if not access.namespace:
        return Verdict(False, "can only read namespaced object of this type")
    return _judge_referred(node, access, nodes)


def _judge_get(node: str, access: Access, nodes: Nodes) -> Verdict:
    if access.verb != "get":
        return Verdict(False, "can only get individual resources of this type")
    if access.subresource:
        return Verdict(False, "cannot get subresource")
    return _judge_referred(node, access, nodes)


def _judge_volume(node: str, access: Access, nodes: Nodes) -> Verdict:
    """Of its pods' claims alone. A volume may name a server and the secret for it."""
    if access.verb != "get" or access.subresource or not access.name:
        return _judge_get(node, access, nodes)
    claim = nodes.spec_of("persistentvolumes", access.name).get("claimRef") or {}
    wanted = ("persistentvolumeclaims", claim.get("name"))
    is_used = _is_referred(node, claim.get("namespace"), wanted, nodes)
    return ALLOWED if is_used else _unrelated(node)


def _judge_attachment(node: str, access: Access, nodes: Nodes) -> Verdict:
    if access.verb != "get" or access.subresource or not access.name:
        return _judge_get(node, access, nodes)
    spec = nodes.spec_of("volumeattachments.storage.k8s.io", access.name)
    return ALLOWED if spec.get("nodeName") == node else _unrelated(node)


def _judge_claim(node: str, access: Access, nodes: Nodes) -> Verdict:
    if access.subresource != "status":
        return _judge_get(node, access, nodes)
    if access.verb not in ("update", "patch"):
        return Verdict(False, "can only get/update/patch this type")
    return _judge_referred(node, access, nodes)


def _judge_account(node: str, access: Access, nodes: Nodes) -> Verdict:
    if access.verb == "get" and not access.subresource:
        return _judge_read(node, access, nodes)
    if access.verb != "create" or not access.name:
        return Verdict(False, "can only create tokens for individual service accounts")
    if access.subresource != "token":
        return Verdict(False, "can only create token subresource of serviceaccount")
    return _judge_referred(node, access, nodes)


def _judge_referred(node: str, access: Access, nodes: Nodes) -> Verdict:
    if not access.name:
        return Verdict(False, "No Object name found")
    wanted = (access.resource, access.name)
    is_used = _is_referred(node, access.namespace, wanted, nodes)
    return ALLOWED if is_used else _unrelated(node)


def _is_referred(
    node: str, namespace: str | None, wanted: tuple[str, str | None], nodes: Nodes
) -> bool:
    """Whether a pod on the node refers to it. `wanted`: plural and name."""
    return any(
        pod["metadata"].get("namespace") == namespace and wanted in references(pod)
        for pod in nodes.pods_on(node)
    )


def _judge_lease(node: str, access: Access, nodes: Nodes) -> Verdict:
    if access.verb not in _OWN_VERBS:
        return Verdict(False, "can only get, create, update, patch, or delete a node lease")
    if access.namespace != _LEASE_NAMESPACE:
        why = f"can only access leases in the {quoted(_LEASE_NAMESPACE)} system namespace"
        return Verdict(False, why)
    if access.verb != "create" and access.name != node:
        why = "can only access node lease with the same name as the requesting node"
        return Verdict(False, why)
    return ALLOWED


def _judge_csi_node(node: str, access: Access, nodes: Nodes) -> Verdict:
    if access.verb not in _OWN_VERBS:
        return Verdict(False, "can only get, create, update, patch, or delete a CSINode")
    if access.subresource:
        return Verdict(False, "cannot authorize CSINode subresources")
    if access.verb != "create" and access.name != node:
        return Verdict(False, "can only access CSINode with the same name as the requesting node")
    return ALLOWED


_Judge: TypeAlias = Callable[[str, Access, Nodes], Verdict]
_DIVIDED: dict[tuple[str, str], _Judge] = {
    ("", "nodes"): _judge_node,
    ("", "pods"): _judge_pod,
    ("", "secrets"): _judge_read,
    ("", "configmaps"): _judge_read,
    ("", "persistentvolumeclaims"): _judge_claim,
    ("", "persistentvolumes"): _judge_volume,
    ("", "serviceaccounts"): _judge_account,
    ("resource.k8s.io", "resourceclaims"): _judge_get,
    ("coordination.k8s.io", "leases"): _judge_lease,
    ("storage.k8s.io", "csinodes"): _judge_csi_node,
    ("storage.k8s.io", "volumeattachments"): _judge_attachment,
}
