"""How long an attack goes on, and where its dice come from.

`make test` makes each attack with a fixed seed and a fixed number of steps, so that it does the
same every time. `make attack` makes the same attacks with a seed of its own and until their time is
up. Every step has dice of its own, which depend on the seed, the attack and the number of the step.
"""

import os
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

SEED, SECONDS = "ATTACK_SEED", "ATTACK_SECONDS"  # in the environment
USUAL_SECONDS = 45.0
_SHORT_SEED = 1
_SHOWN = 10  # problems of one attack


def long_seed() -> int:
    return int(os.environ.get(SEED, "1"))


def long_seconds() -> float:
    return float(os.environ.get(SECONDS, USUAL_SECONDS))


@dataclass(frozen=True)
class Step:
    """One attempt of an attack, and its dice."""

    number: int
    draw: random.Random


@dataclass
class Campaign:
    """One attack: its steps, and what went wrong in them."""

    name: str
    seed: int
    seconds: float | None  # None: a fixed number of steps
    problems: list[str] = field(default_factory=list)
    made: int = 0

    def steps(self, short: int) -> Iterator[Step]:
        """`short`: so many in `make test`."""
        end_s = None if self.seconds is None else time.monotonic() + self.seconds
        while self.made < short if end_s is None else time.monotonic() < end_s:
            yield Step(self.made, random.Random(f"{self.seed} {self.name} {self.made}"))
            self.made += 1

    def note(self, what: str) -> None:
        self.problems.append(f"step {self.made}: {what}")

    def end(self, count: Callable[[], object] = dict) -> None:
        """Fails with all that went wrong, and how to see it again."""
        shown = "\n\n".join(self.problems[:_SHOWN])
        again = f"{len(self.problems)} problems in {self.made} steps of seed {self.seed}"
        assert not self.problems, f"{self.name}: {again} (make attack SEED={self.seed})\n{shown}"
        assert self.made, f"{self.name}: there was no time for a single step; {count()}"


def campaign(name: str, *, is_long: bool) -> Campaign:
    if is_long:
        return Campaign(name, long_seed(), long_seconds())
    return Campaign(name, _SHORT_SEED, None)
