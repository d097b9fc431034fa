"""Page: what a page shows, as values. One module of `console/pages/` makes each of them."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from gpupool.console.parts.missing import NoSuchThing
from gpupool.console.parts.table import RowAction, TableView
from gpupool.console.visit import Visit

__all__ = ["NoSuchThing", "Page", "Shown"]


@dataclass(frozen=True, slots=True)
class Shown:
    """The frame around every page draws these; the page's template draws `values`."""

    title: str
    sentence: str = ""  # the state of the thing, in one sentence
    crumbs: tuple[tuple[str, str], ...] = ()  # text and address of the pages above this one
    actions: tuple[RowAction, ...] = ()  # the first one is the primary
    command: str = ""  # the same with kubectl
    table: TableView | None = None  # of a page that is a list
    values: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Page:
    path: str  # below /clusters/{cluster}/: "nodes/{node}"
    menu: str  # the entry of the side bar under which it stands
    # Raises NoSuchThing, Denied, NotRead, KubeError.
    show: Callable[[Visit], Awaitable[Shown]]
    template: str = "list.html"
    in_menu: str = ""  # its name in the side bar; empty: it is not there
    is_live: bool = True
