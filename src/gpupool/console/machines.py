"""Instance types: the machines that a node pool can be made of, as forms offer them.

The catalogue belongs to the local platform, which the console does not import. Whoever starts the
console hands it in (`cli/console.py`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpupool.console.words import Translate


@dataclass(frozen=True, slots=True)
class MachineType:
    name: str
    vcpus: int
    memory_gib: float
    model: str = ""  # of its cards
    cards: int = 0

    @property
    def family(self) -> str:
        """ecs.gn6v-c8g1.2xlarge: gn6v"""
        return self.name.removeprefix("ecs.").partition(".")[0].partition("-")[0]


def machine_words(t: Translate, machine: MachineType) -> str:
    size = t("{vcpus} vCPU, {memory} GiB", vcpus=machine.vcpus, memory=f"{machine.memory_gib:g}")
    cards = f"{machine.cards} × {machine.model}" if machine.cards else t("no cards")
    return t("{size}, {cards}", size=size, cards=cards)


def offered_types(
    t: Translate, known: Mapping[str, MachineType], names: Iterable[str]
) -> tuple[tuple[str, str], ...]:
    """Choices of a form: those with cards first, by family; then the rest."""

    def place(name: str) -> tuple[bool, str, int, int, str]:
        machine = known.get(name) or MachineType(name, 0, 0)
        return not machine.cards, machine.family, machine.cards, machine.vcpus, name

    def words(name: str) -> str:
        machine = known.get(name)
        return f"{name} · {machine_words(t, machine)}" if machine is not None else name

    return tuple((name, words(name)) for name in sorted(names, key=place))
