"""Form: fields, their checks, and what a visitor typed. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum


class FieldKind(StrEnum):
    TEXT = "text"
    NUMBER = "number"
    CHOICE = "choice"
    CHECK = "check"
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
    # What is wrong with a text that is otherwise good; empty: nothing.
    check: Callable[[str], str] | None = None


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


def typed_values(fields: tuple[Field, ...], given: Mapping[str, str]) -> dict[str, str]:
    """What the visitor typed, for the form to show it again."""
    return {
        field.name: given.get(field.name, "").replace("\r\n", "\n")[: field.longest + 1]
        for field in fields
    }


def complaints(fields: tuple[Field, ...], values: Mapping[str, str]) -> dict[str, str]:
    found = {field.name: _complaint(field, values[field.name].strip()) for field in fields}
    return {name: words for name, words in found.items() if words}


def _complaint(field: Field, text: str) -> str:
    if not text:
        return Complaint.MISSING if field.is_required else ""
    if len(text) > field.longest:
        return Complaint.TOO_LONG
    if field.kind is FieldKind.NUMBER and not _is_within(field, text):
        return Complaint.NOT_A_NUMBER
    if field.kind is FieldKind.CHOICE and text not in dict(field.choices):
        return Complaint.NOT_OFFERED
    return field.check(text) if field.check is not None else ""


def _is_within(field: Field, text: str) -> bool:
    if not text.isdecimal() or len(text) > 9:
        return False
    number = int(text)
    return (field.least is None or number >= field.least) and (
        field.most is None or number <= field.most
    )
