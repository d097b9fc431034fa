"""Function: what an expression may call, and how."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from localkube.apiserver.cel.frame import Frame, Run
from localkube.apiserver.cel.types import Type
from localkube.apiserver.cel.values import Optional


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


def called(function: Function, args: list[Run]) -> Run:
    def run(frame: Frame) -> Any:
        frame.charge(1)
        return function.run(frame, *[arg(frame) for arg in args])

    return run


def with_alternative(function: Function, args: list[Run]) -> Run:
    """What is not needed is not evaluated, so that it cannot fail either."""
    first, second = args

    def run(frame: Frame) -> Any:
        frame.charge(1)
        value = first(frame)
        is_there = isinstance(value, Optional) and value.values
        return function.run(frame, value, None if is_there else second(frame))

    return run
