"""Signed texts: JWS in its compact form, ES256 and nothing else.

We read only what we wrote, so there is nothing to negotiate: the header must be ours to the byte,
and base64 must be in its one canonical spelling. Slow to import; see service_account_tokens.py.
"""

import base64
import binascii
import hashlib

import orjson
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)

_HALF = 32  # bytes of each of the two numbers that a signature consists of
_ALGORITHM = ec.ECDSA(SHA256())


class BadSignature(Exception):
    pass


class Signer:
    """Signs and verifies with one P-256 key."""

    def __init__(self, key_pem: bytes) -> None:
        key = load_pem_private_key(key_pem, password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey) or key.curve.name != "secp256r1":
            raise ValueError("the key that signs service account tokens is not one of P-256")
        self._key = key
        self._public = key.public_key()
        public = self._public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        self.key_id = _encode(hashlib.sha256(public).digest())
        self._header = _encode(orjson.dumps({"alg": "ES256", "kid": self.key_id}))

    def sign(self, payload: bytes) -> str:
        signed = f"{self._header}.{_encode(payload)}"
        halves = decode_dss_signature(self._key.sign(signed.encode(), _ALGORITHM))
        return f"{signed}.{_encode(b''.join(half.to_bytes(_HALF, 'big') for half in halves))}"

    def verify(self, text: str) -> bytes:
        """The payload. Raises BadSignature."""
        signed, _, signature = text.rpartition(".")
        header, _, payload = signed.partition(".")
        raw = _decode(signature)
        if header != self._header or len(raw) != 2 * _HALF:
            raise BadSignature
        r, s = int.from_bytes(raw[:_HALF], "big"), int.from_bytes(raw[_HALF:], "big")
        try:
            self._public.verify(encode_dss_signature(r, s), signed.encode(), _ALGORITHM)
        except InvalidSignature:
            raise BadSignature from None
        return _decode(payload)


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        raise BadSignature from None
    # Python skips what is no base64, and spare bits may be anything: neither is ours.
    if _encode(data) != text:
        raise BadSignature
    return data
