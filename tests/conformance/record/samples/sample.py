"""An object as a user would send it."""

from __future__ import annotations

from dataclasses import dataclass

from tests.conformance.record.case import Json


@dataclass(frozen=True)
class Sample:
    """`label` is the kind, followed by a dash and what is particular about this one."""

    label: str
    path: str
    body: Json
