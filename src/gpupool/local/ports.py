"""Chooses a cluster's port: the same one at each start, so that its kubeconfig stays valid."""

import errno
import socket
from collections.abc import Set
from zlib import crc32

from gpupool.local import DEFAULT_NAME
from gpupool.local.home import CannotUse

_FIRST = 16443
_SPREAD = 1000


def choose_port(
    name: str, *, wanted: int | None, last: int | None, others: Set[int] = frozenset()
) -> int:
    """`wanted` by the user, else the `last` one, else that of the name, else 0 (any). `others`:
    ports of the other clusters, which may be stopped now, or not listen yet."""
    if wanted is not None:
        if reason := obstacle(wanted):
            raise no_port(wanted, reason, "Choose another with --port, or leave the flag out.")
        return wanted
    if last:
        if reason := obstacle(last):
            raise no_port(
                last,
                reason,
                "The cluster had it before, and its kubeconfig says so. Stop what uses it now, or "
                "give the cluster another one with --port (0 takes any): its kubeconfig is then "
                "written again.",
            )
        return last
    own = own_port(name)
    # Any port will do for a cluster that had none before: no kubeconfig names it yet.
    return 0 if own in others or obstacle(own) else own


def own_port(name: str) -> int:
    # A checksum, because hash() of a text differs from process to process.
    return _FIRST if name == DEFAULT_NAME else _FIRST + 1 + crc32(name.encode()) % _SPREAD


def obstacle(port: int) -> str:
    """Why the port cannot be used; empty when it can."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trial:
        # As the server does it: connections in TIME_WAIT are no obstacle.
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", port))
        except OSError as error:
            return _REASONS.get(error.errno or 0, error.strerror or str(error))
    return ""


_REASONS = {
    errno.EADDRINUSE: "it is in use",
    errno.EACCES: "it is reserved for root",
}


def no_port(port: int, reason: str, advice: str) -> CannotUse:
    return CannotUse(f"Port {port} on 127.0.0.1 cannot be used: {reason}. {advice}")
