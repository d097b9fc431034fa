"""Who a client is by its certificate: the common name is the user, organizations are the groups.

TLS has verified by then that the cluster's authority signed it for clients. Whether it has ended
is looked at for each request: connections live long.
"""

import hashlib
import ssl
from collections.abc import Iterator
from typing import Any

from localkube.apiserver.request import ClientCertificate, User
from localkube.apiserver.security.identities import AUTHENTICATED

_UID = "1.3.6.1.4.1.57683.2"  # the attribute that Kubernetes has registered for a user's uid
_CREDENTIAL = "authentication.kubernetes.io/credential-id"


def of_connection(wrapped: ssl.SSLObject | None) -> ClientCertificate | None:
    """None: without TLS, without a certificate, or one that names nobody."""
    shown = wrapped.getpeercert() if wrapped is not None else None
    encoded = wrapped.getpeercert(binary_form=True) if wrapped is not None else None
    if not shown or not encoded:
        return None
    attributes = list(_attributes(shown))
    names = [value for key, value in attributes if key == "commonName"]
    uids = [value for key, value in attributes if key == _UID]
    if not names or not names[-1] or len(uids) > 1:
        return None
    groups = [value for key, value in attributes if key == "organizationName"]
    user = User(
        names[-1],
        tuple(dict.fromkeys([*groups, AUTHENTICATED])),
        uids[0] if uids else "",
        {_CREDENTIAL: (f"X509SHA256={hashlib.sha256(encoded).hexdigest()}",)},
    )
    return ClientCertificate(user, ssl.cert_time_to_seconds(str(shown["notAfter"])))


def _attributes(shown: Any) -> Iterator[tuple[str, str]]:
    for name in shown.get("subject", ()):
        yield from name
