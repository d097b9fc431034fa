"""Validates an object that is created, updated, or updated in its status, by its kind's rules.

Objects come complete: defaults applied, name, uid and timestamps set. The order of checks, and
which of them run twice on an update, follow kube-apiserver, because clients see the list.

A built-in kind without rules (rules.py says which) is one that no controller, scheduler or kubelet
here acts on. Its name, labels and other metadata are checked as for every kind; of the rest, only
the schema is checked, when the body is decoded.
"""

from collections.abc import Callable, Mapping

from kubeclient.objects import Obj
from localkube.apiserver.defaults.convert import to_storage
from localkube.apiserver.kinds import Kind
from localkube.apiserver.validation import certificates, nodes, pods
from localkube.apiserver.validation.errors import Errors
from localkube.apiserver.validation.formats import dns_subdomain
from localkube.apiserver.validation.metadata import (
    generic_meta,
    kubernetes_finalizers,
    object_meta,
    object_meta_update,
    own_meta,
)
from localkube.apiserver.validation.own_limits import ratcheted
from localkube.apiserver.validation.rules import RULES


def validate_create(obj: Obj, kind: Kind) -> Errors:
    errors: Errors = []
    if kind.custom:
        object_meta(errors, obj["metadata"], dns_subdomain, namespaced=kind.namespaced)
        return errors
    rules = RULES.get((kind.group, kind.kind))
    if rules is None:
        own_meta(errors, obj["metadata"], dns_subdomain, namespaced=kind.namespaced)
        return errors
    errors = rules.create(to_storage(obj, kind))
    if not errors and not rules.metadata:
        generic_meta(errors, obj["metadata"], namespaced=kind.namespaced)
    return errors


# Doors to one part of an object that have rules of their own.
_DOORS: Mapping[tuple[str, str], Callable[[Obj, Obj], Errors]] = {
    ("pods", "ephemeralcontainers"): pods.ephemeral_update,
    ("pods", "resize"): pods.resize_update,
    ("namespaces", "finalize"): nodes.namespace_finalize,
    ("certificatesigningrequests.certificates.k8s.io", "approval"): certificates.approval_update,
}


def validate_update(new: Obj, old: Obj, kind: Kind, subresource: str = "") -> Errors:
    errors = _update_errors(new, old, kind, subresource)
    return ratcheted(errors, lambda: _whole_errors(old, kind))


def _update_errors(new: Obj, old: Obj, kind: Kind, subresource: str) -> Errors:
    errors = _common_update(new, old, kind)
    door = _DOORS.get((kind.resource, subresource)) if subresource else None
    if door is not None:
        return errors + door(new, old)
    rules = RULES.get((kind.group, kind.kind))
    if kind.custom:
        object_meta_update(errors, new["metadata"], old["metadata"])
    elif rules is None:
        kubernetes_finalizers(errors, new["metadata"])
    else:
        errors += rules.update(to_storage(new, kind), to_storage(old, kind))
    return errors


def validate_status_update(new: Obj, old: Obj, kind: Kind) -> Errors:
    errors = _status_errors(new, old, kind)
    return ratcheted(errors, lambda: _whole_errors(old, kind))


def _whole_errors(obj: Obj, kind: Kind) -> Errors:
    """Of all of it, as if it came anew."""
    errors: Errors = []
    generic_meta(errors, obj["metadata"], namespaced=kind.namespaced)
    return errors + validate_create(obj, kind)


def _status_errors(new: Obj, old: Obj, kind: Kind) -> Errors:
    errors = _common_update(new, old, kind)
    rules = RULES.get((kind.group, kind.kind))
    if rules is not None and not kind.custom:
        if rules.status is not None:
            errors += rules.status(to_storage(new, kind), to_storage(old, kind))
        else:
            object_meta_update(errors, new["metadata"], old["metadata"])
    return errors


def _common_update(new: Obj, old: Obj, kind: Kind) -> Errors:
    errors: Errors = []
    if new["metadata"] != old["metadata"]:
        generic_meta(errors, new["metadata"], namespaced=kind.namespaced)
        object_meta_update(errors, new["metadata"], old["metadata"])
    return errors
