"""Resize requests of users, and the agent's reports on lowered limits <-> annotations.

A request (`wish`) is written by people: `6` for a pod with one share, or `train=6,serve=2`, in
units of gpu-mem: the new total of the container over all its cards.

The agent's reports are on its node, because users can write to their pods but not to nodes.
Versioned JSON.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from gpupool.contract.documents import Mib, document_of
from gpupool.contract.names import ANNOTATION_SHRINKS
from gpupool.core.resize import ONLY
from kubeclient.objects import Obj

VERSION = 1
_MAX_CHARS = 4096
_ITEM = re.compile(r"(?:([a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)=)?([0-9]{1,6})")


class BadWish(ValueError):
    """The request cannot be parsed; the text says what was expected."""


class BadReports(ValueError):
    """The annotation cannot be parsed, or has another version."""


def wish_text(container: str, units: int) -> str:
    return f"{container}={units}" if container else str(units)


def wish_of(text: str) -> dict[str, int]:
    """Units by container; ONLY stands for a name that is not given. Raises BadWish."""
    if len(text) > _MAX_CHARS:
        raise BadWish(f"wanted at most {_MAX_CHARS} characters, found {len(text)}")
    found: dict[str, int] = {}
    items = [item.strip() for item in text.split(",")]
    for item in items:
        match = _ITEM.fullmatch(item)
        if match is None or (match[1] is None and len(items) > 1):
            raise BadWish(f'wanted UNITS, or CONTAINER=UNITS[,...], found "{text[:60]}"')
        name = match[1] or ONLY
        if name in found:
            raise BadWish(f"wanted each container once, found {name} twice")
        found[name] = int(match[2])
    return found


@dataclass(frozen=True, slots=True)
class ShrinkReport:
    """For a pod whose limit was lowered: memory in use since the limit is in force."""

    token: str  # the value of the pod's ANNOTATION_SHRINKING
    # MiB by container and card
    used_mib: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    problem: str = ""  # why the usage is unknown


class _Report(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    token: str
    used_mib: dict[str, dict[str, Mib]] = msgspec.field(name="usedMiB", default_factory=dict)
    problem: str = ""


class _Document(msgspec.Struct, frozen=True):
    version: int
    pods: dict[str, _Report]


def reports_text(reports: Mapping[str, ShrinkReport]) -> str:
    """The annotation for reports by uid of the pod; empty if there are none."""
    if not reports:
        return ""
    pods = {
        uid: _Report(
            report.token,
            {name: dict(used) for name, used in report.used_mib.items()},
            report.problem,
        )
        for uid, report in sorted(reports.items())
    }
    return msgspec.json.encode(_Document(VERSION, pods)).decode()


def reports_of(text: str) -> dict[str, ShrinkReport]:
    """Raises BadReports."""
    if not text:
        return {}
    document = document_of(_DECODER, text, BadReports)
    if document.version != VERSION:
        raise BadReports(f"version {document.version}; this program reads version {VERSION}")
    return {
        uid: ShrinkReport(report.token, report.used_mib, report.problem)
        for uid, report in document.pods.items()
    }


def node_reports(node: Obj) -> dict[str, ShrinkReport]:
    """Reports that cannot be parsed count as missing: they confirm nothing."""
    text = (node["metadata"].get("annotations") or {}).get(ANNOTATION_SHRINKS, "")
    try:
        return reports_of(text)
    except BadReports:
        return {}


_DECODER = msgspec.json.Decoder(_Document)
