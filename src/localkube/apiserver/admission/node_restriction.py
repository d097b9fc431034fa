"""NodeRestriction: what a node may write about itself.

Which objects a node may touch at all is judged before (security/node_access.py); here it is kept
from drawing work to itself by taking off taints or by taking labels that others rely on.
"""

from localkube.apiserver.admission.attributes import (
    Attributes,
    ClusterView,
    Operation,
    refusal,
)
from localkube.apiserver.security.node_access import node_of

_OWN_LABELS = frozenset(
    {
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
    }
)
_OWN_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io")
_RESTRICTED_DOMAIN = "node-restriction.kubernetes.io"
_KUBERNETES_DOMAINS = ("kubernetes.io", "k8s.io")


def restrict_node(attributes: Attributes, cluster: ClusterView) -> None:
    node = node_of(attributes.user) if attributes.user is not None else None
    if node is None or attributes.obj is None:
        return
    new, old = attributes.obj, attributes.old or {}
    changed = _changed_labels(_labels(new), _labels(old))
    forbidden = ", ".join(sorted(label for label in changed if _is_forbidden(label)))
    if attributes.operation is Operation.CREATE:
        if forbidden:
            why = f'node "{node}" is not allowed to set the following labels: {forbidden}'
            raise refusal(attributes, why)
        return
    for what, was, now in (
        ("taints", (old.get("spec") or {}).get("taints"), (new.get("spec") or {}).get("taints")),
        (
            "ownerReferences",
            old["metadata"].get("ownerReferences"),
            new["metadata"].get("ownerReferences"),
        ),
    ):
        if (was or []) != (now or []):
            raise refusal(attributes, f'node "{node}" is not allowed to modify {what}')
    if forbidden:
        raise refusal(attributes, f"is not allowed to modify labels: {forbidden}")


def _labels(thing: dict[str, dict[str, dict[str, str]]]) -> dict[str, str]:
    return (thing.get("metadata") or {}).get("labels") or {}


def _changed_labels(new: dict[str, str], old: dict[str, str]) -> set[str]:
    return {key for key in {*new, *old} if new.get(key) != old.get(key)}


def _is_forbidden(label: str) -> bool:
    domain = label.rpartition("/")[0]
    if _within(domain, _RESTRICTED_DOMAIN):
        return True
    if label in _OWN_LABELS or any(_within(domain, own) for own in _OWN_DOMAINS):
        return False
    return any(_within(domain, kubernetes) for kubernetes in _KUBERNETES_DOMAINS)


def _within(domain: str, parent: str) -> bool:
    return domain == parent or domain.endswith(f".{parent}")
