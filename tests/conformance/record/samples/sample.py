"""An object as a user would send it."""

from __future__ import annotations

from dataclasses import dataclass

from tests.conformance.record.case import Json
from tests.conformance.record.objects import obj


@dataclass(frozen=True)
class Sample:
    """`label` is the kind, followed by a dash and what is particular about this one."""

    label: str
    path: str
    body: Json


def named(label: str, path: str, api_version: str, kind: str, **parts: Json) -> Sample:
    """A sample of a named API group, its object named after its label."""
    return Sample(
        label, f"/apis/{api_version}/{path}", obj(api_version, kind, label.lower(), **parts)
    )
