"""Kind: objects of one kind have a list, a page each, and things that can be done to them.

A kind is a value that says what is different. The pages and actions are the same for all of them
(`pages/objects.py`).
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from gpupool.console.parts.action import Action, Checked, Done, Question
from gpupool.console.parts.table import Choice, Column, RowAction, TableView
from gpupool.console.rights import Right
from gpupool.console.visit import Visit
from kubeclient.objects import Obj
from kubeclient.resources import Resource


class Named(Protocol):
    """What the rows of all kinds have."""

    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def labels(self) -> tuple[tuple[str, str], ...]: ...
    @property
    def created(self) -> str: ...


Row = TypeVar("Row", bound=Named)


def _always(_: Any) -> bool:
    return True


async def _always_offered(_visit: Visit, _obj: Obj) -> bool:
    return True


@dataclass(frozen=True)
class Doing:
    """Something that can be done to an object; an Action, without what its kind knows."""

    key: str  # the end of its address
    label: str
    rights: Callable[[str], tuple[Right, ...]]  # by the object's namespace
    ask: Callable[[Visit], Awaitable[Question]]
    do: Callable[[Visit, Mapping[str, str]], Awaitable[Done | Checked]]
    fits: Callable[[Any], bool] = _always  # to the row of an object
    is_dangerous: bool = False
    template: str = "action.html"
    in_list: bool = True  # whether rows of the list have its button: they have room for few
    is_page: bool = False  # too large for a dialogue
    # On the page of an object, for what its row does not say.
    is_offered: Callable[[Visit, Obj], Awaitable[bool]] = _always_offered


def action_of(doing: Doing, at: str, menu: str) -> Action:
    """`at`: the address of the object's page."""

    def rights(visit: Visit) -> tuple[Right, ...]:
        return doing.rights(visit.names.get("namespace", ""))

    return Action(f"{at}/{doing.key}", menu, rights, doing.ask, doing.do, doing.template)


@dataclass(frozen=True, slots=True)
class Section:
    """A part of an object's page."""

    key: str
    title: str
    table: TableView | None = None
    note: str = ""  # in place of a table
    texts: tuple[tuple[str, str], ...] = ()  # names and what is in them
    actions: tuple[RowAction, ...] = ()


def _no_choices(_: Visit) -> tuple[Choice[Any], ...]:
    return ()


async def _no_sections(_visit: Visit, _obj: Obj, _row: Any) -> tuple[Section, ...]:
    return ()


@dataclass(frozen=True)
class Kind(Generic[Row]):
    resource: Resource
    title: str  # of the list
    row: Callable[[Obj], Row]
    sentence: Callable[[Visit, list[Row]], str]  # about all of them
    state: Callable[[Visit, Row], str]  # about one of them
    columns: Callable[[Visit], tuple[Column[Row], ...]]  # beside name, namespace and age
    words: Callable[[Row], str]  # what the search looks at, beside name and namespace
    doings: tuple[Doing, ...]
    creates: Callable[[Visit], Awaitable[tuple[RowAction, ...]]]
    choices: Callable[[Visit], tuple[Choice[Row], ...]] = _no_choices  # filters of the list
    sections: Callable[[Visit, Obj, Row], Awaitable[tuple[Section, ...]]] = _no_sections
    has_yaml: bool = True  # on its page

    @property
    def path(self) -> str:
        return self.resource.plural
