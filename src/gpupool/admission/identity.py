"""Identity: the certificate that the webhook shows, always one that the API server trusts."""

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
    by: x509.Certificate  # the authority's


class Identity:
    def __init__(self, kube: Kube, namespace: str, secret: str, names: Sequence[str]) -> None:
        """`names`: by which we are called. `secret`: where the authority of all replicas is."""
        self.context = server_context()
        self._kube = kube
        self._namespace = namespace
        self._secret = secret
        self._names = names
        self._shown: _Shown | None = None
        self._registered_pem = b""

    async def refresh(self) -> bytes:
        """What the API server must trust. Raises BadAuthority, KubeError."""
        now = datetime.datetime.now(datetime.UTC)
        authority = await shared_authority(self._kube, self._namespace, self._secret, now)
        if self._wants_another(authority, now):
            made = load_certificate(self.context, authority, self._names, now)
            self._shown = _Shown(made, authority.certificate)
        return authority.bundle_pem

    def registered(self, bundle_pem: bytes) -> None:
        """That is what the API server trusts by the time of the next `refresh`."""
        self._registered_pem = bundle_pem

    def _wants_another(self, authority: Authority, now: datetime.datetime) -> bool:
        """A new authority's not before it is trusted, unless the old one's is no more."""
        if self._shown is None:
            return True
        if self._shown.by == authority.certificate:
            return is_due(self._shown.certificate, now)
        is_known = authority.bundle_pem == self._registered_pem
        return is_known or not is_trusted(self._shown.by, authority.bundle_pem)
