"""Tokens that stand for fixed users. Only their digests are kept, on disk and in memory."""

import hashlib
import hmac
import secrets
from pathlib import Path

from kubeclient.redaction import TOKEN_PREFIX
from localkube.apiserver.request import User
from localkube.data_directory import read_private, write_private

_ADMIN_FILE = "admin-token.sha256"


def new_token() -> str:
    return TOKEN_PREFIX + secrets.token_urlsafe(32)


def token_digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="replace")).digest()


def admin_token(directory: Path, current: str) -> str:
    """The administrator's token: `current`, as the cluster's kubeconfig has it, if that is it.

    Otherwise a new one, whose digest is then the one that counts. The token itself is nowhere but
    in kubeconfigs.
    """
    stored = (read_private(directory / _ADMIN_FILE) or b"").strip()
    if current and hmac.compare_digest(stored, token_digest(current).hex().encode()):
        return current
    token = new_token()
    write_private(directory / _ADMIN_FILE, token_digest(token).hex().encode() + b"\n")
    return token


class StaticTokens:
    """Which user a token stands for."""

    def __init__(self) -> None:
        self._users: dict[bytes, tuple[bytes, User]] = {}

    def add(self, token: str, user: User) -> None:
        digest = token_digest(token)
        self._users[digest[:8]] = (digest, user)

    def issue(self, user: User) -> str:
        """A new token, good as long as this process lives: for an agent that it starts."""
        token = new_token()
        self.add(token, user)
        return token

    def find(self, digest: bytes) -> User | None:
        """Looked up by a part of the digest, then compared in constant time, against timing
        attacks.
        """
        found = self._users.get(digest[:8])
        if found is not None and hmac.compare_digest(found[0], digest):
            return found[1]
        return None
