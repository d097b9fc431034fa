"""Which of the recorded paths our server serves."""

from localkube.apiserver.kinds import Kinds, builtin_kinds
from localkube.apiserver.routing import Target, route

KINDS = Kinds(builtin_kinds())


def is_served(path: str) -> bool:
    return isinstance(route(path, KINDS), Target)
