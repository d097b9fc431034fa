"""NamespaceLifecycle: nothing new in a namespace that is not there, or on its way out."""

from localkube.apiserver.admission.attributes import (
    Attributes,
    ClusterView,
    Operation,
    refusal,
)
from localkube.apiserver.status import failure

# kube-node-lease may go: whoever needs it makes it again.
_UNDELETABLE = frozenset({"default", "kube-system", "kube-public"})
_TERMINATING = "NamespaceTerminating"
_REVIEWS = ("authorization.k8s.io", "localsubjectaccessreviews")


def namespace_lifecycle(attributes: Attributes, cluster: ClusterView) -> None:
    kind = attributes.kind
    if kind.resource == "namespaces":
        deleted = attributes.operation is Operation.DELETE
        if deleted and attributes.name in _UNDELETABLE:
            raise refusal(attributes, "this namespace may not be deleted")
        return
    if not attributes.namespace or attributes.operation is Operation.DELETE:
        return
    if (kind.group, kind.plural) == _REVIEWS:  # saying more would tell which namespaces exist
        return
    name = attributes.namespace
    namespace = cluster.get("namespaces", "", name)
    if namespace is None:
        message = f'namespaces "{name}" not found'
        raise failure(404, "NotFound", message, details={"name": name, "kind": "namespaces"})
    if attributes.operation is Operation.CREATE:
        if (namespace.get("status") or {}).get("phase") != "Terminating":
            return
        why = f"unable to create new content in namespace {name} because it is being terminated"
        error = refusal(attributes, why)
        error.status["details"]["causes"] = [
            {
                "reason": _TERMINATING,
                "message": f"namespace {name} is being terminated",
                "field": "metadata.namespace",
            }
        ]
        raise error
