"""Which webhooks a write is shown to, and as what."""

from dataclasses import dataclass

from localkube.apiserver.admission.attributes import Attributes, ClusterView
from localkube.apiserver.admission.matching import matched_kind
from localkube.apiserver.admission.webhook_config import Webhook
from localkube.apiserver.kinds import Kind, Kinds

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
    if not webhook.criteria.rules:  # a policy without rules is about all; a webhook about nothing
        return None
    kind = matched_kind(webhook.criteria, attributes, cluster, kinds)
    return None if kind is None else Invocation(webhook, kind)
