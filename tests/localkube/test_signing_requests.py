"""What is a signing request, and which of them a signer accepts."""

import base64
import ipaddress

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from localkube.signing_requests import (
    SIGNERS,
    BadRequest,
    certificate_problem,
    decoded,
    parse,
)
from tests.localkube.signing_samples import CLIENT, KUBELET, SERVING, ask

NODE = ("system:node:n", "system:nodes")
HOST = x509.DNSName("n.example.com")
ADDRESS = x509.IPAddress(ipaddress.ip_address("10.0.0.1"))
MAIL = x509.RFC822Name("n@example.com")
URI = x509.UniformResourceIdentifier("https://example.com/")
TO_SERVE = ("digital signature", "key encipherment", "server auth")
TO_ASK = ("digital signature", "key encipherment", "client auth")


def test_a_request_tells_who_asks_and_under_which_names() -> None:
    found = parse(ask("jane", "readers", "writers", alternatives=[HOST, ADDRESS, MAIL, URI]).pem)
    assert (found.common_name, found.organizations) == ("jane", ("readers", "writers"))
    assert (found.dns_names, found.addresses) == (("n.example.com",), ("10.0.0.1",))
    assert (found.emails, found.uris) == (("n@example.com",), ("https://example.com/",))


@pytest.mark.parametrize("pem", [b"", b"nonsense", b"-----BEGIN CERTIFICATE REQUEST-----\n"])
def test_what_is_no_request_is_refused(pem: bytes) -> None:
    with pytest.raises(BadRequest, match="PEM block type must be CERTIFICATE REQUEST"):
        parse(pem)


def test_a_request_that_another_key_has_signed_is_refused() -> None:
    der = x509.load_pem_x509_csr(ask("jane").pem).public_bytes(Encoding.DER)
    renamed = der.replace(b"jane", b"root")
    with pytest.raises(BadRequest, match="signature"):
        parse(_pem(renamed))


def test_a_request_of_bytes_at_random_is_refused() -> None:
    with pytest.raises(BadRequest, match="asn1"):
        parse(_pem(b"\x30\x03\x02\x01\x01"))


def test_what_is_no_base64_is_no_request() -> None:
    assert decoded("Bad_Name") == b""


@pytest.mark.parametrize(
    ("signer", "who", "names", "usages", "expected"),
    [
        (CLIENT, ("jane",), [], ("client auth",), ""),
        (CLIENT, ("jane",), [], TO_ASK, ""),
        (
            CLIENT,
            ("jane",),
            [],
            ("digital signature",),
            "missing required usage for client certificate: client auth",
        ),
        (
            CLIENT,
            ("jane",),
            [],
            ("client auth", "cert sign"),
            "invalid usage for client certificate: cert sign",
        ),
        (KUBELET, NODE, [], TO_ASK, ""),
        (KUBELET, NODE, [], ("digital signature", "client auth"), ""),
        (KUBELET, ("jane", "system:nodes"), [], TO_ASK, "system:node:"),
        (KUBELET, ("system:node:n",), [], TO_ASK, "organization is not system:nodes"),
        (KUBELET, (*NODE, "system:masters"), [], TO_ASK, "organization is not system:nodes"),
        (KUBELET, NODE, [HOST], TO_ASK, "DNS subjectAltNames are not allowed"),
        (KUBELET, NODE, [ADDRESS], TO_ASK, "IP subjectAltNames are not allowed"),
        (KUBELET, NODE, [MAIL], TO_ASK, "Email subjectAltNames are not allowed"),
        (KUBELET, NODE, [URI], TO_ASK, "URI subjectAltNames are not allowed"),
        (
            KUBELET,
            NODE,
            [],
            ("client auth",),
            "usages did not match [client auth digital signature key encipherment]",
        ),
        (SERVING, NODE, [HOST, ADDRESS], TO_SERVE, ""),
        (SERVING, NODE, [], TO_SERVE, "DNS or IP subjectAltName is required"),
        (SERVING, NODE, [HOST, URI], TO_SERVE, "URI subjectAltNames are not allowed"),
        (SERVING, NODE, [HOST], TO_ASK, "usages did not match"),
        (SERVING, ("n", "system:nodes"), [HOST], TO_SERVE, "system:node:"),
    ],
)
def test_a_signer_accepts_only_what_it_is_for(
    signer: str,
    who: tuple[str, ...],
    names: list[x509.GeneralName],
    usages: tuple[str, ...],
    expected: str,
) -> None:
    found = SIGNERS[signer](parse(ask(*who, alternatives=names).pem), usages)
    assert expected in found
    assert bool(found) is bool(expected)


def test_only_certificates_may_be_written_as_such() -> None:
    assert certificate_problem(b"x") == "must contain at least one CERTIFICATE PEM block"
    assert "found" in certificate_problem(ask("jane").pem)
    assert "malformed" in certificate_problem(_pem(b"xx", "CERTIFICATE"))


def _pem(der: bytes, kind: str = "CERTIFICATE REQUEST") -> bytes:
    body = base64.encodebytes(der).decode()
    return f"-----BEGIN {kind}-----\n{body}-----END {kind}-----\n".encode()


@pytest.mark.parametrize(
    "text",
    [
        b"-----BEGIN A-----\n" * 50_000,
        b"-----BEGIN " * 80_000,
        b"-----BEGIN A-----" + b" " * 900_000,
        b"".join(b"-----BEGIN %d-----\n" % number for number in range(40_000)),
    ],
)
def test_blocks_that_never_end_take_no_longer_than_others(text: bytes) -> None:
    with pytest.raises(BadRequest, match="PEM block type"):
        parse(text)
    assert certificate_problem(text)
