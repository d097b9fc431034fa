"""Certificate signing requests (PKCS #10): what they say, and which of them a signer accepts.

The API server looks at a request before it is stored, the controllers before they approve or sign
it. Refusals are in the words of Kubernetes.

Whatever parses a request is imported only when needed: loading the library behind it takes longer
than all the rest of a start.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography import x509

API_SERVER_CLIENT = "kubernetes.io/kube-apiserver-client"
KUBELET_CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
KUBELET_SERVING = "kubernetes.io/kubelet-serving"

NODES = "system:nodes"
_NODE_PREFIX = "system:node:"
_BEGIN = re.compile(rb"-----BEGIN ([^\r\n-]{0,100})-----[ \t]{0,100}\r?\n")
_MOST_ENDLESS = 100  # blocks that begin and do not end, which are looked at
_CLIENT_USAGES = frozenset({"digital signature", "key encipherment", "client auth"})
_SERVING_USAGES = frozenset({"digital signature", "key encipherment", "server auth"})
_ONLY_RSA = frozenset({"key encipherment"})


class BadRequest(ValueError):
    """Not a signing request that can be used; the text says why."""


@dataclass(frozen=True, slots=True)
class SigningRequest:
    """What the rules look at. `parsed` is the whole of it."""

    common_name: str
    organizations: tuple[str, ...]
    dns_names: tuple[str, ...]
    addresses: tuple[str, ...]
    emails: tuple[str, ...]
    uris: tuple[str, ...]
    parsed: "x509.CertificateSigningRequest"


def parse(pem: bytes) -> SigningRequest:
    """Raises BadRequest for what is no request, or not signed by its own key."""
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm

    kind, content = next(_blocks(pem), (b"", b""))
    if kind != b"CERTIFICATE REQUEST":
        raise BadRequest("PEM block type must be CERTIFICATE REQUEST")
    try:
        parsed = x509.load_der_x509_csr(base64.b64decode(b"".join(content.split())))
        is_signed = parsed.is_signature_valid
        found = _contents(parsed)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise BadRequest(f"asn1: structure error: {error}") from None
    if not is_signed:
        raise BadRequest("x509: signature verification failure")
    return found


def _blocks(pem: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The kind of each block that ends as it began, and what is in it."""
    place, endless = 0, 0
    while endless < _MOST_ENDLESS and (begin := _BEGIN.search(pem, place)):
        place = begin.end()
        mark = b"-----END " + begin[1] + b"-----"
        end = pem.find(mark, place)
        if end < 0:
            endless += 1
            continue
        yield begin[1], pem[place:end]
        place = end + len(mark)


def decoded(text: str) -> bytes:
    """A field of bytes, as it stands in JSON. What is no base64 is no bytes, and no request."""
    try:
        return base64.b64decode(text)
    except binascii.Error:
        return b""


def _contents(parsed: "x509.CertificateSigningRequest") -> SigningRequest:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    def named(oid: x509.ObjectIdentifier) -> list[str]:
        return [str(each.value) for each in parsed.subject.get_attributes_for_oid(oid)]

    try:
        extension = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        names: x509.SubjectAlternativeName | None = extension.value
    except x509.ExtensionNotFound:
        names = None

    def alternatives(kind: type[x509.GeneralName]) -> tuple[str, ...]:
        return tuple(str(each.value) for each in names or () if isinstance(each, kind))

    return SigningRequest(
        common_name=(named(NameOID.COMMON_NAME) or [""])[-1],
        organizations=tuple(named(NameOID.ORGANIZATION_NAME)),
        dns_names=alternatives(x509.DNSName),
        addresses=alternatives(x509.IPAddress),
        emails=alternatives(x509.RFC822Name),
        uris=alternatives(x509.UniformResourceIdentifier),
        parsed=parsed,
    )


# What each signer minds about a request with these usages; empty: nothing.
SignerRule = Callable[[SigningRequest, Sequence[str]], str]


def kubelet_client(request: SigningRequest, usages: Sequence[str]) -> str:
    if request.organizations != (NODES,):
        return "subject organization is not system:nodes"
    for names, kind in (
        (request.dns_names, "DNS"),
        (request.emails, "Email"),
        (request.addresses, "IP"),
        (request.uris, "URI"),
    ):
        if names:
            return f"{kind} subjectAltNames are not allowed"
    if not request.common_name.startswith(_NODE_PREFIX):
        return "subject common name does not begin with system:node:"
    return _usages_are(usages, _CLIENT_USAGES)


def kubelet_serving(request: SigningRequest, usages: Sequence[str]) -> str:
    if request.organizations != (NODES,):
        return "subject organization is not system:nodes"
    if not request.dns_names and not request.addresses:
        return "DNS or IP subjectAltName is required"
    if request.emails:
        return "Email subjectAltNames are not allowed"
    if request.uris:
        return "URI subjectAltNames are not allowed"
    wrong = _usages_are(usages, _SERVING_USAGES)
    if wrong:
        return wrong
    if not request.common_name.startswith(_NODE_PREFIX):
        return "subject common name does not begin with system:node:"
    return ""


def api_server_client(request: SigningRequest, usages: Sequence[str]) -> str:
    for usage in usages:
        if usage not in _CLIENT_USAGES:
            return f"invalid usage for client certificate: {usage}"
    if "client auth" not in usages:
        return "missing required usage for client certificate: client auth"
    return ""


SIGNERS: Mapping[str, SignerRule] = {
    API_SERVER_CLIENT: api_server_client,
    KUBELET_CLIENT: kubelet_client,
    KUBELET_SERVING: kubelet_serving,
}


def _usages_are(usages: Iterable[str], wanted: frozenset[str]) -> str:
    if frozenset(usages) in (wanted, wanted - _ONLY_RSA):
        return ""
    return f"usages did not match [{' '.join(sorted(wanted))}]"


def certificate_problem(pem: bytes) -> str:
    """What is wrong with the certificates that a signer writes; empty: nothing."""
    from cryptography import x509

    blocks = list(_blocks(pem))
    for kind, content in blocks:
        if kind != b"CERTIFICATE":
            found = kind.decode(errors="replace")
            return f'only CERTIFICATE PEM blocks are allowed, found "{found}"'
        if b":" in content:
            return "no PEM block headers are permitted"
        try:
            x509.load_der_x509_certificate(base64.b64decode(b"".join(content.split())))
        except ValueError as error:
            return f"x509: malformed certificate: {error}"
    return "" if blocks else "must contain at least one CERTIFICATE PEM block"
