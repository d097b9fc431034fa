"""Which webhooks a write is shown to, and as what."""

from dataclasses import dataclass

from kubeclient.objects import Obj
from kubeclient.selectors import LabelSelector
from localkube.apiserver.admission.attributes import Attributes, ClusterView
from localkube.apiserver.admission.webhook_config import Webhook, WebhookRule
from localkube.apiserver.kinds import Kind, Kinds
from localkube.apiserver.status import failure

# A broken webhook must not keep anybody from repairing its configuration.
_EXEMPT_GROUP = "admissionregistration.k8s.io"


@dataclass(frozen=True, slots=True)
class Invocation:
    """`kind`: what the webhook's rule asks for; another version of the same, perhaps."""

    webhook: Webhook
    kind: Kind


def is_exempt(attributes: Attributes) -> bool:
    return attributes.kind.group == _EXEMPT_GROUP


def invocation_of(
    webhook: Webhook, attributes: Attributes, cluster: ClusterView, kinds: Kinds
) -> Invocation | None:
    """Does not judge the webhook's conditions, which cost more than the rest."""
    kind = _matching_kind(webhook, attributes, kinds)
    if kind is None or not _matches_objects(webhook.object_selector, attributes):
        return None
    if not _matches_namespace(webhook.namespace_selector, attributes, cluster):
        return None
    return Invocation(webhook, kind)


def namespace_of(attributes: Attributes) -> str:
    """The namespace that selectors look at; for a Namespace, that is the object itself."""
    if attributes.kind.resource == "namespaces":
        return attributes.name
    return attributes.namespace


def _matching_kind(webhook: Webhook, attributes: Attributes, kinds: Kinds) -> Kind | None:
    if any(_matches_rule(rule, attributes, attributes.kind) for rule in webhook.rules):
        return attributes.kind
    if not webhook.equivalent:
        return None
    others = [
        kind
        for kind in kinds
        if kind.resource == attributes.kind.resource and kind is not attributes.kind
    ]
    for rule in webhook.rules:  # earlier rules win over earlier versions
        for kind in others:
            if _matches_rule(rule, attributes, kind):
                return kind
    return None


def _matches_rule(rule: WebhookRule, attributes: Attributes, kind: Kind) -> bool:
    return (
        _among(rule.operations, attributes.operation.value)
        and _among(rule.groups, kind.group)
        and _among(rule.versions, kind.version)
        and _matches_scope(rule.scope, kind)
        and any(
            resource in ("*", kind.plural) and subresource in ("*", attributes.subresource)
            for resource, subresource in rule.resources
        )
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
