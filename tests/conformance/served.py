"""Which of the recorded paths our server serves."""

from gpupool.localcluster.apiserver.kinds import Kinds
from gpupool.localcluster.apiserver.kinds_builtin import builtin_kinds
from gpupool.localcluster.apiserver.routing import Target, route

KINDS = Kinds(builtin_kinds())


def is_served(path: str) -> bool:
    return isinstance(route(path, KINDS), Target)
