"""Who may speak for a signer: the verbs `approve` and `sign` on `signers` in certificates.k8s.io.

A role names signers as resourceNames: one signer ("example.com/a") or all of a domain
("example.com/*").
"""

from kubeclient.objects import Obj
from localkube.apiserver.request import User
from localkube.apiserver.security.access import Access
from localkube.apiserver.security.rbac import Authorizer
from localkube.apiserver.status import ApiError, failure

GROUP = "certificates.k8s.io"
_RESOURCE = "certificatesigningrequests"


def signer_refusal(
    authorizer: Authorizer, user: User, access: Access, new: Obj, old: Obj
) -> ApiError | None:
    """Judged by the stored object: what a body says about the signer does not count."""
    if (access.group, access.resource) != (GROUP, _RESOURCE):
        return None
    if access.subresource == "approval":
        verb = "approve"
    elif access.subresource == "status" and new.get("status") != old.get("status"):
        verb = "sign"
    else:
        return None
    signer = old["spec"]["signerName"]
    if _may(authorizer, user, verb, signer):
        return None
    name = old["metadata"]["name"]
    message = (
        f'{_RESOURCE}.{GROUP} "{name}" is forbidden: user not permitted to {verb} requests with '
        f'signerName "{signer}"'
    )
    details = {"name": name, "group": GROUP, "kind": _RESOURCE}
    return failure(403, "Forbidden", message, details=details)


def _may(authorizer: Authorizer, user: User, verb: str, signer: str) -> bool:
    whole_domain = f"{signer.partition('/')[0]}/*"
    return any(
        authorizer.allowed(user, Access(verb, GROUP, "signers", name=name)).allowed
        for name in (signer, whole_domain)
    )
