"""Makes one finding of those that say the same about several nodes or pods."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gpupool.doctor.evidence import Finding, Level

_SOME = 3  # so many of several names are shown


@dataclass(frozen=True, slots=True)
class Saying:
    """What is said about a thing, in the singular and in the plural."""

    level: Level
    about: str
    one: str  # a sentence; {} stands for the name
    many: str  # a sentence without its end; {} stands for the number, and the names follow
    mend: str = ""  # {} stands for the (first) name


def grouped(said: Iterable[tuple[Saying, str]]) -> Iterator[Finding]:
    """In the order in which each saying came first: a large cluster fits on a screen."""
    groups: dict[Saying, list[str]] = {}
    for saying, name in said:
        groups.setdefault(saying, []).append(name)
    for saying, names in groups.items():
        if len(names) == 1:
            what = saying.one.replace("{}", names[0], 1)
        else:
            what = f"{saying.many.replace('{}', str(len(names)), 1)}: {some_of(names)}."
        yield Finding(saying.level, saying.about, what, saying.mend.replace("{}", names[0], 1))


def some_of(names: list[str]) -> str:
    """The first few names, and how many there are beside them."""
    if len(names) <= _SOME + 1:  # "and 1 other" is no shorter than the name
        return ", ".join(names)
    return f"{', '.join(names[:_SOME])} and {len(names) - _SOME} others"
