"""Action: something that a visitor does to the cluster. One value says all about it.

A GET on its address shows the form (or the question), a POST does it. With scripts the same form
opens as a dialogue over the page. `server.py` checks rights before both, so that no action can be
written without its rights.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpupool.console.diffs import DiffLine
from gpupool.console.parts.form import Field
from gpupool.console.rights import Right
from gpupool.console.visit import Visit


@dataclass(frozen=True, slots=True)
class Question:
    """What the form says and asks."""

    title: str
    button: str  # what it will do, in words: "Delete pod web-0"
    sentence: str = ""
    fields: tuple[Field, ...] = ()
    is_dangerous: bool = False
    typed_name: str = ""  # has to be typed before the button works
    diff: tuple[DiffLine, ...] = ()  # what it would change
    command: str = ""  # the same with kubectl
    more: Mapping[str, Any] = field(default_factory=dict)  # for a template of its own
    cancel: str = ""  # where "Cancel" leads on a page of its own
    extra: Mapping[str, object] = field(default_factory=dict)  # for a template of its own


@dataclass(frozen=True, slots=True)
class Done:
    """Where the visitor is led, and what to say there."""

    href: str
    words: str
    is_gone: bool = False  # the object: its page has nothing to show any more


@dataclass(frozen=True, slots=True)
class Checked:
    """Nothing was done: the visitor wanted to know whether it would work."""

    words: str
    values: Mapping[str, object] = field(default_factory=dict)  # for the template: what would be
    given: Mapping[str, str] = field(default_factory=dict)  # fields that have changed


@dataclass(frozen=True, slots=True)
class Action:
    path: str  # below /clusters/{cluster}/: "nodes/{node}/cordon"
    menu: str  # the entry of the side bar under which it stands
    rights: Callable[[Visit], tuple[Right, ...]]
    ask: Callable[[Visit], Awaitable[Question]]
    # Raises Invalid for what is wrong with a field, KubeError with the API server's words.
    do: Callable[[Visit, Mapping[str, str]], Awaitable[Done | Checked]]
    template: str = field(default="action.html")
