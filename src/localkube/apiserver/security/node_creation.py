"""What a node may create: only the body tells if it is its own. (Kubernetes: NodeRestriction.)"""

from kubeclient.objects import Obj
from localkube.apiserver.request import User
from localkube.apiserver.security.access import Access, quoted
from localkube.apiserver.security.node_access import Nodes, node_of

_MIRROR = "kubernetes.io/config.mirror"


def creation_refusal(user: User, access: Access, body: Obj, nodes: Nodes) -> str | None:
    """Why a node may not create this; None if it may, or if the user is no node."""
    node = node_of(user)
    if node is None or access.verb != "create":
        return None
    name = _part(body, "metadata").get("name", "")
    match access.group, access.resource, access.subresource:
        case ("", "nodes", "") if name != node:
            return f"node {quoted(node)} is not allowed to modify node {quoted(name)}"
        case ("coordination.k8s.io", "leases", "") if name != node:
            return "can only access node lease with the same name as the requesting node"
        case ("storage.k8s.io", "csinodes", "") if name != node:
            return "can only access CSINode with the same name as the requesting node"
        case ("", "pods", ""):
            return _pod_refusal(node, body)
        case ("", "serviceaccounts", "token"):
            return _token_refusal(node, access.namespace, body, nodes)
        case _:
            return None


def _pod_refusal(node: str, pod: Obj) -> str | None:
    if _MIRROR not in _part(_part(pod, "metadata"), "annotations"):
        lacks = f"pod does not have {quoted(_MIRROR)} annotation"
        return f"{lacks}, node {quoted(node)} can only create mirror pods"
    if _part(pod, "spec").get("nodeName") != node:
        return f"node {quoted(node)} can only create pods with spec.nodeName set to itself"
    return None


def _token_refusal(node: str, namespace: str, request: Obj, nodes: Nodes) -> str | None:
    bound = _part(_part(request, "spec"), "boundObjectRef")
    if bound.get("kind") != "Pod" or not bound.get("name"):
        return "node requested token not bound to a pod"
    if not bound.get("uid"):
        return "node requested token with a pod binding without a uid"
    if nodes.node_of_pod(namespace, bound["name"]) != node:
        return "node requested token bound to a pod scheduled on a different node"
    return None


def _part(body: Obj, key: str) -> Obj:
    """Bodies may come here before anybody has checked their shape."""
    found = body.get(key)
    return found if isinstance(found, dict) else {}
