"""Reads deploy/Dockerfile: the few instructions that it has, as values.

for stage in read_stages(text): stage.base, stage.name, stage.steps
"""

from __future__ import annotations

import re
from typing import NamedTuple

_KNOWN = ("WORKDIR", "COPY", "RUN", "ENV", "USER", "ENTRYPOINT")


class Step(NamedTuple):
    instruction: str
    text: str


class Stage(NamedTuple):
    base: str
    name: str
    steps: list[Step]

    def last(self, instruction: str) -> str:
        """What its last such instruction says; empty: it has none."""
        return next((each.text for each in self.steps[::-1] if each.instruction == instruction), "")


def read_stages(text: str) -> list[Stage]:
    """Raises ValueError at anything that is not known here."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    stages: list[Stage] = []
    for line in re.sub(r"\\\n", " ", "\n".join(lines)).splitlines():
        instruction, _, rest = line.partition(" ")
        if instruction == "FROM":
            base, _, name = rest.partition(" AS ")
            stages.append(Stage(base, name, []))
        elif instruction in _KNOWN and stages:
            stages[-1].steps.append(Step(instruction, " ".join(rest.split())))
        else:
            raise ValueError(f"an instruction that is not known here: {line}")
    return stages
