"""Signing requests for tests, with the keys that they were made with."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kubeclient.certificates import key_pem, new_key
from kubeclient.objects import Obj

CLIENT = "kubernetes.io/kube-apiserver-client"
KUBELET = "kubernetes.io/kube-apiserver-client-kubelet"
SERVING = "kubernetes.io/kubelet-serving"


@dataclass(frozen=True, slots=True)
class Asked:
    pem: bytes
    key: ec.EllipticCurvePrivateKey

    @property
    def text(self) -> str:
        """As it stands in JSON."""
        return base64.b64encode(self.pem).decode()

    @property
    def key_pem(self) -> bytes:
        return key_pem(self.key)


def ask(name: str, *groups: str, alternatives: Sequence[x509.GeneralName] = ()) -> Asked:
    key = new_key()
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    attributes.append(x509.NameAttribute(NameOID.COMMON_NAME, name))
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(attributes))
    if alternatives:
        names = x509.SubjectAlternativeName(alternatives)
        builder = builder.add_extension(names, critical=False)
    signed = builder.sign(key, hashes.SHA256())
    return Asked(signed.public_bytes(serialization.Encoding.PEM), key)


def request_object(asked: Asked, signer: str, *usages: str, name: str = "r", **more: object) -> Obj:
    spec = {"request": asked.text, "signerName": signer, "usages": list(usages), **more}
    return {"metadata": {"name": name}, "spec": spec}
