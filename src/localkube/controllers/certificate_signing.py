"""Signs approved requests with the cluster's own authority, as kube-controller-manager does.

    kubernetes.io/kube-apiserver-client           clients of the API server
    kubernetes.io/kube-apiserver-client-kubelet   kubelets, as clients
    kubernetes.io/kubelet-serving                 kubelets, as servers

A request that its signer does not accept gets the condition Failed, and stays without certificate.
Other signers are somebody else's.
"""

import asyncio
import base64
import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kubeclient.mirror import Key
from kubeclient.objects import Obj
from kubeclient.resources import SIGNING_REQUESTS
from localkube.controllers.run import Context, Controller, Watch
from localkube.signing_requests import (
    SIGNERS,
    BadRequest,
    SigningRequest,
    decoded,
    parse,
)

if TYPE_CHECKING:
    from cryptography import x509

LONGEST = datetime.timedelta(days=365)
_SHORTEST = datetime.timedelta(minutes=10)
# Clocks differ: a certificate that is valid from this moment on is refused by those that are late.
_BACKDATED = datetime.timedelta(minutes=5)
_KEY_USAGES = {"digital signature", "key encipherment"}
_SHORT = datetime.timedelta(hours=8)  # the end of shorter ones is not brought forward by that


def controller(authority: Path) -> Controller:
    """`authority`: the directory with ca.crt and ca.key."""

    async def reconcile(key: Key, context: Context) -> float | None:
        request = context.of(SIGNING_REQUESTS).get(key[1])
        rule = None if request is None else SIGNERS.get(request["spec"]["signerName"])
        if request is None or rule is None or not _is_due(request):
            return None
        status = dict(request.get("status") or {})
        spec = request["spec"]
        try:
            wanted = parse(decoded(spec.get("request", "")))
            problem = rule(wanted, spec.get("usages", []))
        except BadRequest as error:
            problem = str(error)
        if problem:
            status["conditions"] = [*status.get("conditions", ()), _failed(problem)]
        else:
            validity = validity_of(spec.get("expirationSeconds"), context.now())
            # Signing takes a few milliseconds, and loading what does it the first time many more.
            pem = await asyncio.to_thread(sign, wanted, spec["usages"], validity, authority)
            status["certificate"] = base64.b64encode(pem).decode()
        await context.kube.update_status(SIGNING_REQUESTS, {**request, "status": status})
        return None

    return Controller("csrsigning", (Watch(SIGNING_REQUESTS),), reconcile, workers=1)


def _is_due(request: Obj) -> bool:
    status = request.get("status") or {}
    types = {each["type"] for each in status.get("conditions", ()) if each["status"] == "True"}
    return (
        "Approved" in types and not types & {"Denied", "Failed"} and not status.get("certificate")
    )


def _failed(problem: str) -> Obj:
    return {
        "type": "Failed",
        "status": "True",
        "reason": "SignerValidationFailure",
        "message": problem,
    }


Validity = tuple[datetime.datetime, datetime.datetime]


def validity_of(asked_s: int | None, now: datetime.datetime) -> Validity:
    asked = LONGEST if asked_s is None else datetime.timedelta(seconds=asked_s)
    length = max(min(asked, LONGEST), _SHORTEST)
    now = now.replace(microsecond=0)
    end = now + length if length < _SHORT else now + length - _BACKDATED
    return now - _BACKDATED, end


def sign(
    request: SigningRequest, usages: Sequence[str], validity: Validity, authority: Path
) -> bytes:
    """The certificate, as PEM. It never outlives the authority."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import ExtendedKeyUsageOID

    from kubeclient.certificates import authority_key_identifier, certificate_pem, load_key

    ca = x509.load_pem_x509_certificate((authority / "ca.crt").read_bytes())
    key = load_key((authority / "ca.key").read_bytes())
    begins, ends = validity
    builder = (
        x509.CertificateBuilder()
        .subject_name(request.parsed.subject)
        .issuer_name(ca.subject)
        .public_key(request.parsed.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(min(ends, ca.not_valid_after_utc))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(authority_key_identifier(ca), critical=False)
    )
    # Without any, everything is allowed: an extension that allows nothing would make it useless.
    if _KEY_USAGES & {*usages}:
        builder = builder.add_extension(_key_usage(usages), critical=True)
    purposes = {
        "client auth": ExtendedKeyUsageOID.CLIENT_AUTH,
        "server auth": ExtendedKeyUsageOID.SERVER_AUTH,
    }
    extended = [purposes[usage] for usage in usages if usage in purposes]
    builder = builder.add_extension(x509.ExtendedKeyUsage(extended), critical=False)
    if request.dns_names or request.addresses or request.emails or request.uris:
        names = request.parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        builder = builder.add_extension(names.value, critical=False)
    return certificate_pem(builder.sign(key, hashes.SHA256()))


def _key_usage(usages: Sequence[str]) -> "x509.KeyUsage":
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature="digital signature" in usages,
        key_encipherment="key encipherment" in usages,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
