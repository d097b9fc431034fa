"""Identity: the webhook's server certificate, always one that the API server trusts.

Rotation of the authority, in an order in which no call of the API server fails:

1. A replica finds the authority due and writes a new one to the Secret. The bundle there holds the
   new certificate and the old one.
2. Each replica registers the new bundle with the API server, and still shows its certificate of the
   old authority, which the bundle also covers.
3. At the next refresh, a minute later, API servers have read the new bundle: the replica makes
   itself a certificate of the new authority.
"""

import datetime
from collections.abc import Sequence
from typing import NamedTuple

from cryptography import x509

from gpupool.admission.authority import (
    Authority,
    is_due,
    is_trusted,
    load_certificate,
    server_context,
    shared_authority,
)
from kubeclient.client import Kube


class _Shown(NamedTuple):
    certificate: x509.Certificate
    authority: x509.Certificate  # that signed it


class Identity:
    def __init__(self, kube: Kube, namespace: str, secret: str, names: Sequence[str]) -> None:
        """`names`: those by which the API server calls us. `secret`: holds the shared authority."""
        self.context = server_context()
        self._kube = kube
        self._namespace = namespace
        self._secret = secret
        self._names = names
        self._shown: _Shown | None = None
        self._registered_pem = b""

    async def refresh(self) -> bytes:
        """Renews what is due; returns the bundle that the API server must trust.

        Raises BadAuthority, KubeError.
        """
        now = datetime.datetime.now(datetime.UTC)
        authority = await shared_authority(self._kube, self._namespace, self._secret, now)
        if self._wants_another(authority, now):
            made = load_certificate(self.context, authority, self._names, now)
            self._shown = _Shown(made, authority.certificate)
        return authority.bundle_pem

    def registered(self, bundle_pem: bytes) -> None:
        """To be called once the bundle is registered. The next `refresh` takes it as trusted."""
        self._registered_pem = bundle_pem

    def _wants_another(self, authority: Authority, now: datetime.datetime) -> bool:
        """Whether to make a new server certificate.

        That is when the old one is due, or when the authority was replaced and the API server
        trusts the new one. If the new bundle does not hold the old authority (somebody deleted the
        Secret), there is nothing to wait for: calls fail in any case until the new bundle is
        registered.
        """
        if self._shown is None:
            return True
        if self._shown.authority == authority.certificate:
            return is_due(self._shown.certificate, now)
        is_known = authority.bundle_pem == self._registered_pem
        return is_known or not is_trusted(self._shown.authority, authority.bundle_pem)
