"""Fields of a form that make a node pool of instances that exist, and what they say. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpupool.console.machines import MachineType, machine_words
from gpupool.console.parts.form import Field, FieldKind, Invalid
from gpupool.console.platform import OwnMachine
from gpupool.console.words import Translate

NEW, EXISTING = "new", "existing"
_MOST = 500  # offered in one form: those of the first names


@dataclass(frozen=True, slots=True)
class Existing:
    instance_type: str
    names: tuple[str, ...]


def existing_fields(
    t: Translate, start: str, known: Iterable[OwnMachine], types: Mapping[str, MachineType]
) -> tuple[Field, Field]:
    """`start`: of the names of the fields, so that several pools can be in one form."""
    free = [each for each in known if not each.cluster][:_MOST]
    source = Field(
        f"{start}source",
        t("Instances"),
        FieldKind.CHOICE,
        value=NEW,
        choices=((NEW, t("New instances")), (EXISTING, t("Existing instances"))),
    )
    machines = Field(
        f"{start}machines",
        t("Existing instances, all of one type"),
        FieldKind.SEVERAL,
        help="" if free else t("No instance is free. Add some: gpupool machines add TYPE"),
        choices=tuple((each.name, _words(t, each, types)) for each in free),
        longest=64_000,
    )
    return source, machines


def _words(t: Translate, machine: OwnMachine, types: Mapping[str, MachineType]) -> str:
    known = types.get(machine.instance_type)
    more = f" · {machine_words(t, known)}" if known is not None else ""
    return f"{machine.name} · {machine.instance_type}{more}"


def existing_of(
    t: Translate, values: Mapping[str, str], start: str, known: Iterable[OwnMachine]
) -> Existing | None:
    """None: the pool gets new instances. Raises Invalid."""
    if values.get(f"{start}source", NEW) != EXISTING:
        return None
    field = f"{start}machines"
    names = tuple(dict.fromkeys(values[field].split()))
    if not names:
        raise Invalid({field: t("Choose at least one instance.")})
    free = {each.name: each.instance_type for each in known if not each.cluster}
    found = {free.get(name, "") for name in names}
    if "" in found:
        raise Invalid({field: t("One of them is not free any more.")})
    if len(found) > 1:
        words = t("Wanted instances of one type, found: {types}", types=", ".join(sorted(found)))
        raise Invalid({field: words})
    return Existing(found.pop(), names)
