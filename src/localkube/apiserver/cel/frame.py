"""Frame: what an expression sees while it is evaluated, and what the evaluation may still cost."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from localkube.apiserver.cel.errors import OutOfBudget


class Frame:
    __slots__ = ("left", "names")

    def __init__(self, names: Mapping[str, Any], budget: int) -> None:
        self.names = dict(names)
        self.left = budget

    def charge(self, cost: int) -> None:
        self.left -= cost
        if self.left < 0:
            raise OutOfBudget


Run: TypeAlias = Callable[[Frame], Any]
