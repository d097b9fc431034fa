"""Input that is nested too deeply for a walk is refused, not a crash."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from localkube.apiserver.status import bad_request

P = ParamSpec("P")
R = TypeVar("R")


def refuse_too_deep(walk: Callable[P, R]) -> Callable[P, R]:
    @wraps(walk)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return walk(*args, **kwargs)
        except RecursionError:
            raise bad_request("the body of the request is nested too deeply") from None

    return guarded
