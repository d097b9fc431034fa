"""DefaultStorageClass, DefaultIngressClass, and the check of claims that ask for more space."""

from kubeclient.objects import Obj
from kubeclient.quantity import parse
from localkube.apiserver.admission.attributes import (
    Attributes,
    ClusterView,
    refusal,
)

_STORAGE_CLASSES = "storageclasses.storage.k8s.io"
_INGRESS_CLASSES = "ingressclasses.networking.k8s.io"
_OLD_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
_OLD_INGRESS_CLASS = "kubernetes.io/ingress.class"
_DEFAULT_STORAGE = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_DEFAULT_INGRESS = ("ingressclass.kubernetes.io/is-default-class",)


def default_storage_class(attributes: Attributes, cluster: ClusterView) -> None:
    claim = attributes.created
    if claim is None:
        return
    if "storageClassName" in claim["spec"] or _OLD_STORAGE_CLASS in _annotations(claim):
        return
    name = _newest_default(cluster, _STORAGE_CLASSES, _DEFAULT_STORAGE)
    if name:
        claim["spec"]["storageClassName"] = name


def default_ingress_class(attributes: Attributes, cluster: ClusterView) -> None:
    ingress = attributes.created
    if ingress is None:
        return
    spec = ingress.setdefault("spec", {})
    if "ingressClassName" in spec or _OLD_INGRESS_CLASS in _annotations(ingress):
        return
    name = _newest_default(cluster, _INGRESS_CLASSES, _DEFAULT_INGRESS)
    if name:
        spec["ingressClassName"] = name


def check_claim_growth(attributes: Attributes, cluster: ClusterView) -> None:
    new, old = attributes.obj, attributes.old
    if new is None or old is None or attributes.subresource or _storage(new) <= _storage(old):
        return
    if (old.get("status") or {}).get("phase") != "Bound":
        raise refusal(attributes, "Only bound persistent volume claims can be expanded")
    name = _class_of(new)
    found = cluster.get(_STORAGE_CLASSES, "", name) if name and name == _class_of(old) else None
    if not (found or {}).get("allowVolumeExpansion"):
        why = "only dynamically provisioned pvc can be resized and the storageclass that"
        raise refusal(attributes, f"{why} provisions the pvc must support resize")


def _newest_default(cluster: ClusterView, resource: str, marks: tuple[str, ...]) -> str:
    """Of several the newest, then the first by name (which is the order of the list)."""
    defaults = [
        each
        for each in cluster.list(resource)
        if any(_annotations(each).get(mark) == "true" for mark in marks)
    ]
    if not defaults:
        return ""
    newest = max(defaults, key=lambda each: each["metadata"].get("creationTimestamp", ""))
    name: str = newest["metadata"]["name"]
    return name


def _annotations(thing: Obj) -> dict[str, str]:
    return thing["metadata"].get("annotations") or {}


def _class_of(claim: Obj) -> str:
    found = _annotations(claim).get(_OLD_STORAGE_CLASS, claim["spec"].get("storageClassName"))
    return found or ""


def _storage(claim: Obj) -> int:
    requests = (claim["spec"].get("resources") or {}).get("requests") or {}
    return parse(requests.get("storage", "0")).nanos
