"""Form: fields, their checks, and what a visitor typed. Pure."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class FieldKind(StrEnum):
    TEXT = "text"
    NUMBER = "number"
    RANGE = "range"  # a number, chosen with a slider
    CHOICE = "choice"
    CHECK = "check"
    SEVERAL = "several"  # any number of the choices; the value has one in each line
    LINES = "lines"  # several lines of text
    HIDDEN = "hidden"


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    label: str
    kind: FieldKind = FieldKind.TEXT
    help: str = ""
    value: str = ""  # at first
    is_required: bool = False
    choices: tuple[tuple[str, str], ...] = ()  # value, as shown
    least: int | None = None  # of a number
    most: int | None = None
    longest: int = 4096
    rows: int = 8  # of a field with several lines
    section: str = ""  # the heading above it, where something new begins
    groups: Mapping[str, str] = field(default_factory=dict)  # of choices: value, its group
    # What is wrong with a text that is otherwise good; empty: nothing.
    check: Callable[[str], str] | None = None

    @property
    def grouped(self) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
        """The choices by their groups, in the order in which they come."""
        found: dict[str, list[tuple[str, str]]] = {}
        for choice in self.choices:
            found.setdefault(self.groups.get(choice[0], ""), []).append(choice)
        return tuple((group, tuple(choices)) for group, choices in found.items())


class Invalid(Exception):
    """What is wrong, by the name of the field; "" is the form as a whole."""

    def __init__(self, errors: Mapping[str, str]) -> None:
        super().__init__("; ".join(errors.values()))
        self.errors = dict(errors)


class Complaint(StrEnum):
    """What can be wrong with any field. `templates/parts/form.html` has the words."""

    MISSING = "missing"
    TOO_LONG = "too long"
    NOT_A_NUMBER = "not a number"
    NOT_OFFERED = "not offered"


def sent_values(fields: tuple[Field, ...], sent: Iterable[tuple[str, str]]) -> dict[str, str]:
    """As browsers send a form: several choices are the same name several times."""
    several = {each.name for each in fields if each.kind is FieldKind.SEVERAL}
    found: dict[str, str] = {}
    for name, value in sent:
        joined = name in several and name in found
        found[name] = f"{found[name]}\n{value}" if joined else value
    return found


def typed_values(fields: tuple[Field, ...], given: Mapping[str, str]) -> dict[str, str]:
    """What the visitor typed, for the form to show it again."""
    return {
        each.name: given.get(each.name, "").replace("\r\n", "\n")[: each.longest + 1]
        for each in fields
    }


def trimmed(fields: tuple[Field, ...], values: Mapping[str, str]) -> dict[str, str]:
    """Without blanks around; but in several lines they may mean something, as in YAML."""
    several = {field.name for field in fields if field.kind is FieldKind.LINES}
    return {name: text if name in several else text.strip() for name, text in values.items()}


def complaints(fields: tuple[Field, ...], values: Mapping[str, str]) -> dict[str, str]:
    found = {each.name: _complaint(each, values[each.name].strip()) for each in fields}
    return {name: words for name, words in found.items() if words}


def _complaint(field: Field, text: str) -> str:
    if not text:
        return Complaint.MISSING if field.is_required else ""
    if len(text) > field.longest:
        return Complaint.TOO_LONG
    if field.kind in (FieldKind.NUMBER, FieldKind.RANGE) and not _is_within(field, text):
        return Complaint.NOT_A_NUMBER
    offered = dict(field.choices)
    if field.kind is FieldKind.SEVERAL and not all(each in offered for each in text.split("\n")):
        return Complaint.NOT_OFFERED
    if field.kind is FieldKind.CHOICE and text not in offered:
        return Complaint.NOT_OFFERED
    return field.check(text) if field.check is not None else ""


def _is_within(field: Field, text: str) -> bool:
    if not text.isdecimal() or len(text) > 9:
        return False
    number = int(text)
    return (field.least is None or number >= field.least) and (
        field.most is None or number <= field.most
    )
