"""Makes the keys and certificates of a cluster. Bad input is a ValueError."""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass

from cryptography import x509

from kubeclient import certificates
from kubeclient.certificates import Issued, Validity, certificate_pem, key_pem, load_key, new_key
from localkube.apiserver.security.certificates import FRONT_PROXY

CA_DAYS = 3650
SERVER_DAYS = 365
# A clock that is set back a little must not make the cluster unreachable.
_BACKDATED = datetime.timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Made:
    files: dict[str, bytes]
    not_before_s: int
    not_after_s: int  # of whichever ends first


def renew(found: Mapping[str, bytes], names: list[str], *, renew_s: int) -> Made:
    """A new server certificate; the authority and the service accounts' key stay if there are any.

    An authority that ends within `renew_s` is replaced too.
    """
    authority = _authority(found, datetime.timedelta(seconds=renew_s))
    server = certificates.server_certificate(
        authority, "kube-apiserver", names, _valid_for(SERVER_DAYS), key_usage=True
    )
    account_key = _account_key(found.get("sa.key"))
    ca_pem = certificate_pem(authority.certificate)
    files = {
        "ca.crt": ca_pem,
        "ca.key": key_pem(authority.key),
        "server.crt": certificate_pem(server.certificate) + ca_pem,
        "server.key": key_pem(server.key),
        "sa.key": account_key,
        **_front_proxy(),
    }
    begins = server.certificate.not_valid_before_utc
    ends = min(each.certificate.not_valid_after_utc for each in (server, authority))
    return Made(files, int(begins.timestamp()), int(ends.timestamp()))


def _front_proxy() -> dict[str, bytes]:
    """Made anew together with the server's certificate, and lasting longer than that."""
    authority = certificates.new_authority(
        "localkube front proxy CA", _valid_for(CA_DAYS), key_usage=True
    )
    client = certificates.client_certificate(authority, FRONT_PROXY, _valid_for(CA_DAYS))
    return {
        "front-proxy-ca.crt": certificate_pem(authority.certificate),
        "front-proxy-client.crt": certificate_pem(client.certificate),
        "front-proxy-client.key": key_pem(client.key),
    }


def _account_key(found: bytes | None) -> bytes:
    if not found:
        return key_pem(new_key())
    try:
        load_key(found)
    except ValueError as error:
        raise ValueError(
            f"sa.key is no key ({error}); remove it to have a new one made, which ends all tokens "
            "of service accounts"
        ) from error
    return found


def _authority(found: Mapping[str, bytes], margin: datetime.timedelta) -> Issued:
    if "ca.crt" not in found and "ca.key" not in found:
        return _new_authority()
    for name in ("ca.crt", "ca.key"):
        if name not in found:
            raise ValueError(f"{name} is missing")
    certificate = x509.load_pem_x509_certificate(found["ca.crt"])
    key = load_key(found["ca.key"])
    if certificate.public_key() != key.public_key():
        raise ValueError("ca.key is not the key of ca.crt")
    if certificate.not_valid_after_utc - _now() < margin:
        return _new_authority()
    return Issued(certificate, key)


def _new_authority() -> Issued:
    return certificates.new_authority("localkube cluster CA", _valid_for(CA_DAYS), key_usage=True)


def _valid_for(days: int) -> Validity:
    now = _now()
    return Validity(now - _BACKDATED, now + datetime.timedelta(days=days))


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC).replace(microsecond=0)
