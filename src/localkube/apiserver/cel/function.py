"""Function: what an expression may call, and how."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from localkube.apiserver.cel.types import Type


@dataclass(frozen=True, slots=True)
class Function:
    """`run` gets the frame and the arguments; `x.f(y)` has x as its first argument."""

    run: Callable[..., Any]
    result: Type
    fewest: int
    most: int
    is_method: bool = True
    is_free: bool = False

    def accepts(self, count: int, *, method: bool) -> bool:
        allowed = self.is_method if method else self.is_free
        return allowed and self.fewest <= count <= self.most


def method(run: Callable[..., Any], result: Type, fewest: int, most: int = 0) -> Function:
    """The number of arguments includes what it is called on."""
    return Function(run, result, fewest, most or fewest)


def free(run: Callable[..., Any], result: Type, fewest: int, most: int = 0) -> Function:
    return Function(run, result, fewest, most or fewest, is_method=False, is_free=True)
